"""The runtime's own kinds, as data. A name here is API: it is never renamed or reused.

Columns: kind, category, certainty, blame, title, what happened, what to do (typed, then
in words). Status, policy and resubmission follow the category unless a row says otherwise.
The long explanations are data files, read by `failwell.errors.explanations` only when needed.
"""

from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.frozen import frozen


@frozen
class Kind:
    """One stable name for one way to fail, and what follows from it."""

    name: str
    category: Category
    certainty: Certainty
    """The certainty, unless the evidence shows another one."""
    blame: Blame
    title: str
    """Three or four words, for a heading."""
    summary: str
    """One sentence a person can read; it names no value."""
    action: ActionKind
    advice: str
    """The next step as one sentence to that person."""
    status: int
    """The HTTP status of a response for this failure."""
    policy: str = "none"
    """Name of the retry policy that applies by default."""
    resubmit: bool
    """Whether it makes sense for a person to submit the same work again."""
    model_keys: tuple[str, ...] = ()
    """Keys of `details` that a model may see."""
    owned: bool = False
    """Whether the runtime owns it."""


_POLICY = {Category.TRANSIENT: "server", Category.RESOURCE: "evict", Category.AMBIGUOUS: "reconcile"}


def _kind(
    name: str,
    axes: str,
    title: str,
    summary: str,
    action: ActionKind,
    advice: str,
    *,
    status: int | None = None,
    policy: str | None = None,
    resubmit: bool | None = None,
    model_keys: tuple[str, ...] = (),
) -> Kind:
    category, certainty, blame = axes.split()
    of = Category(category)
    return Kind(
        name=name,
        category=of,
        certainty=Certainty(certainty),
        blame=Blame(blame),
        title=title,
        summary=summary,
        action=action,
        advice=advice,
        status=of.status if status is None else status,
        policy=_POLICY.get(of, "none") if policy is None else policy,
        resubmit=of.resubmit if resubmit is None else resubmit,
        model_keys=model_keys,
        owned=True,
    )


_WAIT = ActionKind.WAIT_AND_RETRY
_CHECK = ActionKind.CHECK_OUTCOME
_INPUT = ActionKind.CHANGE_INPUT
_MODEL = ActionKind.CHANGE_MODEL
_CONFIG = ActionKind.FIX_CONFIGURATION
_BILLING = ActionKind.CHECK_BILLING
_KEYS = ActionKind.CHECK_CREDENTIALS
_ACCESS = ActionKind.REQUEST_ACCESS
_FREE = ActionKind.FREE_RESOURCES
_LIMIT = ActionKind.RAISE_LIMIT
_DECIDE = ActionKind.DECIDE
_AGAIN = ActionKind.RESUBMIT
_SUPPORT = ActionKind.CONTACT_SUPPORT
_UNKNOWN = ActionKind.UNKNOWN

_PROVIDER = (
    _kind("provider.rate_limited", "transient rejected account", "Rate limited",
          "The provider turned the call away because a short usage window is full.",
          _WAIT, "Wait for the window to reopen, then repeat the call.", status=429, policy="rate_limit"),
    _kind("provider.overloaded", "transient rejected provider", "Provider overloaded",
          "The provider has no room for the call right now.",
          _WAIT, "Wait a moment and repeat the call, or use another model."),
    _kind("provider.unavailable", "transient rejected provider", "Provider unavailable",
          "The provider answered that it cannot serve the call at the moment.",
          _WAIT, "Wait a moment and repeat the call."),
    _kind("provider.timeout", "transient unknown provider", "Provider timed out",
          "The provider did not answer in time, and the call is safe to repeat.",
          _WAIT, "Repeat the call, or allow it more time.", status=504),
    _kind("provider.connection", "transient not_sent provider", "Could not connect",
          "No connection to the service could be made, so nothing was sent.",
          _WAIT, "Check that the address is reachable, then repeat the call."),
    _kind("provider.tls_failed", "configuration not_sent host", "Secure connection failed",
          "The service's certificate was not accepted, so nothing was sent.",
          _CONFIG, "Check the system clock, the certificate store and any proxy in between."),
    _kind("provider.stream_interrupted", "ambiguous partial provider", "Stream broke off",
          "The reply broke off before its end marker.",
          _CHECK, "Check what already arrived before asking again; the call may have been billed."),
    _kind("provider.outcome_unknown", "ambiguous unknown provider", "Outcome unknown",
          "The call was sent and no complete answer came back, so it may or may not have run.",
          _CHECK, "Check whether the work was done or billed before repeating it."),
    _kind("provider.quota_exhausted", "capacity rejected account", "Quota used up",
          "The account's quota, credit or spending limit is used up.",
          _BILLING, "Check the plan and the balance of the account, or wait for the quota to renew.",
          policy="park"),
    _kind("provider.auth", "configuration rejected account", "Credentials refused",
          "The provider did not accept the credentials.",
          _KEYS, "Check that the right key is configured and still valid.", policy="refresh_auth"),
    _kind("provider.permission", "configuration rejected account", "Permission missing",
          "The credentials are valid but may not do this.",
          _ACCESS, "Ask the account's owner for access, or use another key, region or project."),
    _kind("provider.model_not_found", "configuration rejected model", "Model not found",
          "The provider has no model or deployment of that name for this account.",
          _MODEL, "Check the model's name, or choose another model.", model_keys=("model",)),
    _kind("provider.capability_missing", "user_input rejected model", "Capability missing",
          "The chosen model does not support something the call asks for.",
          _MODEL, "Choose a model that supports it, or leave the feature out.", model_keys=("capability",)),
    _kind("provider.bad_request", "user_input rejected request", "Request not valid",
          "The provider could not accept the request as it was written.",
          _INPUT, "Correct the request's parameters.", model_keys=("parameter",)),
    _kind("provider.context_too_long", "content rejected request", "Context too long",
          "The request is longer than the model can read.",
          _INPUT, "Shorten the input, or choose a model with a larger context window.",
          model_keys=("limit", "requested")),
    _kind("provider.content_refused", "content rejected request", "Content refused",
          "The provider's content policy refused the request or the answer.",
          _INPUT, "Change the content; repeating it unchanged will be refused again."),
    _kind("provider.output_truncated", "content partial request", "Answer cut short",
          "The answer reached its length limit before it was complete.",
          _INPUT, "Allow a longer answer, or ask for less.", model_keys=("limit",)),
    _kind("provider.output_invalid", "content done_but_lost model", "Answer unusable",
          "The model answered, but not in the form that was asked for.",
          _INPUT, "Simplify the requested form, or choose a model that keeps to it."),
    _kind("provider.output_rejected", "transient done_but_lost model", "Answer thrown away",
          "The provider threw its own model's answer away; a fresh one may pass.",
          _WAIT, "Repeat the call; if it keeps happening, simplify the tools or the requested form."),
    _kind("provider.exhausted", "transient rejected provider", "Every attempt failed",
          "Every attempt that the policy allowed was made, and each of them failed.",
          _WAIT, "Try again later, or add another provider to the chain.", policy="none"),
    _kind("provider.rejected", "configuration rejected request", "Call rejected",
          "The provider rejected the call for a reason that a repeat does not change.",
          _CONFIG, "Check the endpoint, the version and the parameters of the call."),
    _kind("provider.unknown", "unknown unknown provider", "Unrecognised provider failure",
          "The provider's failure matches nothing that is known.",
          _SUPPORT, "Look at the evidence; `failwell explain` shows what was seen."),
)  # fmt: skip

_TOOL = (
    _kind("tool.denied", "denied not_sent tool", "Tool not allowed",
          "A policy, a missing grant or a person refused the tool call.",
          _ACCESS, "Ask for the tool to be allowed, or do without it.", model_keys=("tool", "reason")),
    _kind("tool.failed", "unknown unknown tool", "Tool failed",
          "The tool stopped with an error that it did not classify.",
          _SUPPORT, "Try another way or do without it. The tool's own error is kept for its operator as the cause.",
          model_keys=("tool",)),
    _kind("tool.timeout", "ambiguous unknown tool", "Tool timed out",
          "The tool did not finish in time, so its work may be half done.",
          _CHECK, "Check what the tool already did before running it again.", model_keys=("tool",)),
    _kind("tool.interrupted", "ambiguous unknown tool", "Tool call interrupted",
          "The run ended before the result of the tool call was recorded, so the tool may have done its work.",
          _CHECK, "If it may have run, check what it did before you call it again.",
          model_keys=("tool", "may_have_run")),
    _kind("tool.busy", "transient not_sent tool", "Busy",
          "Something the work needs is held by someone else at the moment.",
          _WAIT, "Wait until it is free, then repeat.", model_keys=("tool",)),
    _kind("tool.input_invalid", "user_input not_sent request", "Tool input not valid",
          "The tool was called with arguments it cannot accept.",
          _INPUT, "Correct the arguments.", model_keys=("tool", "parameter")),
    _kind("tool.output_malformed", "fatal done_but_lost tool", "Tool output malformed",
          "The tool ran, but what it returned does not have the declared shape.",
          _SUPPORT, "Correct the tool.", model_keys=("tool",)),
    _kind("tool.not_found", "user_input not_sent request", "No such tool",
          "No tool of that name is registered.",
          _INPUT, "Use one of the registered tools.", model_keys=("tool", "known")),
    _kind("tool.unavailable", "fatal not_sent host", "Tool unavailable here",
          "The host does not offer a capability that the tool needs.",
          _CONFIG, "Provide the named capability to the host, or remove the tool.",
          model_keys=("tool", "capability")),
)  # fmt: skip

_RESOURCE = (
    _kind("resource.gpu_memory", "resource unknown worker", "GPU memory used up",
          "The GPU has not enough free memory for the work.",
          _FREE, "Release models that are not in use, or choose a smaller one."),
    _kind("resource.system_memory", "resource unknown host", "Memory used up",
          "The machine has not enough free memory for the work.",
          _FREE, "End what is not needed, or make the work smaller."),
    _kind("resource.disk", "resource unknown host", "Disk full",
          "There is no space left to write to.",
          _FREE, "Free disk space, or write somewhere else."),
    _kind("resource.file_handles", "resource unknown host", "Too many open files",
          "The process or the machine has no file handle left.",
          _FREE, "Close what is open, or raise the limit on open files."),
    _kind("resource.exhausted", "resource unknown host", "Resource used up",
          "Something the work needs is used up on this machine.",
          _FREE, "Free what the details name, or make the work smaller."),
    _kind("resource.never_fits", "resource not_sent host", "Will never fit",
          "The work needs more than the whole machine has.",
          _CONFIG, "Make the work smaller, or run it on a larger machine.", policy="none", resubmit=False),
)  # fmt: skip

_WORKER = (
    _kind("worker.oom", "resource unknown worker", "Worker ran out of memory",
          "The worker process was killed while it worked, most likely for want of memory.",
          _FREE, "Free memory, or make the work smaller."),
    _kind("worker.crashed", "transient unknown worker", "Worker crashed",
          "The worker process died while it worked.",
          _WAIT, "Repeat the work on a fresh worker; if it keeps dying, look at its last output."),
    _kind("worker.stalled", "transient unknown worker", "Worker stalled",
          "The worker showed no progress for longer than it may.",
          _WAIT, "Repeat the work, or allow longer silence."),
    _kind("worker.transient", "transient unknown worker", "Capability hiccup",
          "The capability reported a failure that a repeat may cure.",
          _WAIT, "Repeat the job."),
    _kind("worker.fatal", "fatal unknown worker", "Capability gave up",
          "The capability reported a failure that no repeat will cure.",
          _SUPPORT, "Look at the capability's own message, then correct it or its installation."),
    _kind("worker.start_failed", "configuration not_sent worker", "Worker did not start",
          "The worker process could not be made ready.",
          _CONFIG, "Check the capability's environment and its import errors."),
    _kind("worker.not_loaded", "fatal not_sent ourselves", "Capability not loaded",
          "Work was handed to a capability that was never loaded.",
          _CONFIG, "Load the capability before submitting to it."),
    _kind("worker.disabled", "user_input not_sent request", "Capability disabled",
          "The capability is switched off.",
          _CONFIG, "Enable the capability, then submit again."),
    _kind("worker.timeout", "transient unknown worker", "Job timed out",
          "The job did not finish within its time limit.",
          _WAIT, "Repeat the job, or give it more time.", status=504),
)  # fmt: skip

_LIMIT_KINDS = (
    _kind("limit.budget_exceeded", "limit not_sent request", "Budget spent",
          "Going on would cost more than the budget allows.",
          _LIMIT, "Raise the budget and resume."),
    _kind("limit.run_timeout", "limit unknown request", "Run timed out",
          "The run reached its overall time limit.",
          _LIMIT, "Raise the time limit and resume."),
    _kind("limit.step_timeout", "limit unknown workflow", "Step timed out",
          "A group or a sub-workflow did not end within its time limit.",
          _LIMIT, "Raise the time limit of the step and resume."),
    _kind("limit.turn_limit", "limit unknown request", "Turn limit reached",
          "The conversation reached its limit of turns.",
          _LIMIT, "Raise the turn limit and resume."),
    _kind("limit.iterations", "limit unknown workflow", "Iteration limit reached",
          "The workflow took as many steps as it may.",
          _LIMIT, "Raise the limit and resume, or look for a loop."),
    _kind("limit.visits", "limit unknown workflow", "Visit limit reached",
          "One step was visited as often as it may be.",
          _LIMIT, "Raise the limit and resume, or look for a loop."),
)  # fmt: skip

_CANCEL = tuple(
    _kind(f"cancel.{scope}", "cancelled unknown request", f"{scope.capitalize()} cancelled",
          f"The {scope} was stopped on purpose.", _AGAIN, "Start it again if it is still wanted.",
          resubmit=scope != "job")
    for scope in ("session", "turn", "stage", "tool", "job", "run")
)  # fmt: skip

_SESSION = (
    _kind("session.manifest_drift", "configuration not_sent host", "Manifest drifted",
          "What was recorded no longer matches what is installed.",
          _CONFIG, "Restore the recorded versions, or accept the change explicitly."),
    _kind("session.store_unavailable", "transient unknown host", "Store unavailable",
          "The store could not be read or written.",
          _WAIT, "Check the store's disk and permissions, then repeat.", policy="store"),
    _kind("session.store_corrupt", "fatal not_sent host", "Store corrupt",
          "What the store holds cannot be read as a record.",
          _SUPPORT, "Restore the store from a copy; the damaged file was left as it is."),
    _kind("session.resume_mismatch", "configuration not_sent request", "Cannot resume here",
          "The recorded run belongs to another store, file or version.",
          _CONFIG, "Resume it where it was recorded, or accept the change explicitly."),
    _kind("session.no_snapshot", "user_input not_sent request", "Nothing to resume",
          "Nothing was recorded under that name.",
          _INPUT, "Check the name, or start afresh."),
    _kind("session.locked", "user_input not_sent host", "Already in use",
          "Another process is writing to it.",
          _WAIT, "Let the other process finish or end it, then repeat.", status=409),
    _kind("session.interaction_required", "limit not_sent request", "A person must answer",
          "The work needs an answer and nobody is there to give it.",
          _DECIDE, "Answer the open question, or run with someone at the terminal."),
    _kind("session.interaction_closed", "user_input not_sent request", "Answered too late",
          "The question has an answer, timed out or was withdrawn.",
          _INPUT, "Look at the questions that are open now.", status=409),
    _kind("session.illegal_transition", "fatal not_sent ourselves", "Impossible state change",
          "The session was asked to change in a way its state does not allow.",
          _SUPPORT, "This is a defect in the calling program."),
    _kind("session.secret_leak", "fatal not_sent ourselves", "Secret held back",
          "A secret was about to be written where it must not be, and was held back.",
          _SUPPORT, "Pass a reference to the secret instead of its value."),
)  # fmt: skip

_VALIDATION = (
    _kind("validation.shape_invalid", "user_input not_sent request", "Shape not valid",
          "The data does not have the expected form.",
          _INPUT, "Correct the data.", model_keys=("line", "column", "fields")),
    _kind("validation.config_invalid", "configuration not_sent request", "Configuration not valid",
          "The configuration has keys or values that are not accepted.",
          _CONFIG, "Correct the named keys."),
    _kind("validation.contract_version_mismatch", "configuration not_sent host", "Versions do not match",
          "Two parts were made for different versions of their contract.",
          _CONFIG, "Bring both parts to the same version."),
    _kind("validation.input_invalid", "user_input not_sent request", "Input not valid",
          "A value was given that the program cannot accept.",
          _INPUT, "Correct the input.", model_keys=("fields",)),
    _kind("validation.path_not_found", "user_input not_sent request", "File not found",
          "A file or folder that was named does not exist.",
          _INPUT, "Check the path."),
    _kind("validation.path_wrong_type", "user_input not_sent request", "Not that type of file",
          "A file was named where a folder is needed, or the other way round.",
          _INPUT, "Check the path."),
    _kind("validation.path_denied", "denied not_sent host", "Access to file refused",
          "The operating system does not allow access to a file that was named.",
          _ACCESS, "Change the file's permissions, or run as a user who has them."),
    _kind("validation.assertion_failed", "content partial workflow", "Work not accepted",
          "The assertion of a stage did not accept the work of an attempt.",
          _INPUT, "Read the feedback of the assertion, then change the prompt, the tools or the assertion.",
          model_keys=("feedback",)),
    _kind("validation.context_read_only", "configuration not_sent workflow", "Context written outside setup",
          "Code of a stage wrote into the context in a phase that may only read it.",
          _CONFIG, "Move the write into the stage's `setup`."),
)  # fmt: skip

_EXTENSION = (
    _kind("extension.lifecycle_failure", "fatal unknown ourselves", "Extension failed",
          "An extension failed while it was started, used or stopped.",
          _SUPPORT, "Look at the extension's own error; it is kept as the cause."),
    _kind("extension.dependency_cycle", "configuration not_sent ourselves", "Extensions need each other",
          "Extensions depend on each other in a circle.",
          _CONFIG, "Remove one of the named dependencies."),
    _kind("extension.dependency_missing", "configuration not_sent host", "Dependency missing",
          "Something the work depends on is not installed.",
          _CONFIG, "Install what is missing."),
)  # fmt: skip

_INTERNAL = (
    _kind("internal.script_error", "unknown unknown workflow", "Script failed",
          "A script ended with a failure that it did not classify.",
          _SUPPORT, "Look at the script's last output, and let it raise a typed error."),
    _kind("internal.script_timeout", "ambiguous unknown workflow", "Script timed out",
          "A script did not finish in time and was ended, so its work may be half done.",
          _CHECK, "Check what the script already did, then run it again or give it more time.", status=504),
    _kind("internal.spawn_failed", "configuration not_sent host", "Command did not start",
          "A command could not be started.",
          _CONFIG, "Check that the command exists and may be executed."),
    _kind("internal.schema_violation", "fatal done_but_lost workflow", "Output breaks its schema",
          "A step's output is not what its schema promises.",
          _SUPPORT, "Correct the step or its schema.", model_keys=("failed_field",)),
    _kind("internal.undeclared_kind", "fatal unknown workflow", "Undeclared kind",
          "A step raised a kind that it did not declare.",
          _SUPPORT, "Add the kind to the step's `raises`, or correct the step."),
    _kind("internal.template_error", "configuration not_sent workflow", "Template failed",
          "A template or expression could not be evaluated.",
          _CONFIG, "Correct the template at the named place."),
    _kind("internal.no_route", "configuration done_but_lost workflow", "No route leads on",
          "A step ended well, and none of its success routes holds.",
          _CONFIG, "Add a route without `when` as the last one, or correct the conditions."),
    _kind("internal.sandbox_error", "fatal not_sent workflow", "Expression stopped",
          "An expression did something the sandbox does not allow.",
          _CONFIG, "Simplify the expression."),
    _kind("internal.sandbox_timeout", "fatal not_sent workflow", "Expression timed out",
          "An expression took too many steps or too much time.",
          _CONFIG, "Simplify the expression, or move it into a script step."),
    _kind("internal.io_error", "transient unknown host", "Operating system failure",
          "The operating system could not carry out an operation.",
          _WAIT, "Repeat it; if it keeps failing, look at the machine."),
    _kind("internal.file_unavailable", "configuration not_sent host", "File unavailable",
          "The program needs a file or folder that it cannot use.",
          _CONFIG, "Check that the path exists, and its permissions."),
    _kind("internal.bug", "fatal unknown ourselves", "Program error",
          "The program did something it was not written for.",
          _SUPPORT, "This is a defect: report it to whoever maintains the program."),
    _kind("internal.unknown", "unknown unknown ourselves", "Unclassified failure",
          "The failure matches nothing that is known.",
          _UNKNOWN, "Look at the evidence, and give the failure a kind of its own."),
)  # fmt: skip

_WORKFLOW = (
    _kind("subworkflow.failed", "unknown unknown workflow", "Sub-workflow failed",
          "A sub-workflow failed without a typed error.",
          _SUPPORT, "Look at the sub-workflow's own record."),
    _kind("subworkflow.terminated", "fatal unknown workflow", "Sub-workflow ended itself",
          "A sub-workflow ended itself as failed.",
          _SUPPORT, "Look at the reason that the sub-workflow gave."),
    _kind("retry.exhausted", "transient unknown workflow", "Retries spent",
          "Every retry that the route allowed was made.",
          _WAIT, "Look at the last failure; it is kept as the cause.", policy="none"),
    _kind("halt.intentional", "limit unknown workflow", "Halted on purpose",
          "The workflow's author told it to stop here.",
          _DECIDE, "Read the author's message and decide how to go on."),
)  # fmt: skip

CATALOGUE: tuple[Kind, ...] = (
    *_PROVIDER, *_TOOL, *_RESOURCE, *_WORKER, *_LIMIT_KINDS, *_CANCEL, *_SESSION,
    *_VALIDATION, *_EXTENSION, *_INTERNAL, *_WORKFLOW,
)  # fmt: skip
