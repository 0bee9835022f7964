"""What a client submits: the capability, its arguments by name, and the options of the job."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import CapabilityInputError, CapabilityNotLoadedError
from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.batch import SubmittedBatch, submit_many
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import Job, JobRequest, RequestOptions, check_request, result_of, with_timeout
from failwell.jobs.manifest import Manifest, capability_name
from failwell.jobs.worker_process.types.conversion import from_json_value, has_own_form
from failwell.jobs.worker_process.types.signature import Signature

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class ClientOptions(RequestOptions, total=False):
    """Options of the jobs that a client submits, beside those of every job."""

    instance: str | None
    """The instance that runs the job, if it is not the one that `submit` names."""
    delay: float | None
    """`not_before` as seconds from the time when the job is submitted."""
    max_attempts: int | None
    """Attempts in all."""
    idempotent: bool | None
    """Whether the job may be repeated after an attempt with an unknown outcome."""


def request_of(options: ClientOptions, instance: str) -> JobRequest:
    """The request of a job with these options, without arguments."""
    values: dict[str, Any] = {name: value for name, value in options.items() if name != "instance"}
    delay = values.pop("delay", None)
    if delay is not None:
        if "not_before" in values:
            raise CapabilityInputError(
                "`delay` and `not_before` exclude each other", fields_invalid=["delay", "not_before"]
            )
        values["not_before"] = datetime.now(UTC) + timedelta(seconds=delay)
    control = {name: values.pop(name) for name in ("max_attempts", "idempotent") if name in values}
    return JobRequest(instance=instance, control={**values.pop("control", {}), **control}, **values)


def instance_name(what: Callable[..., Any] | str) -> str:
    """The instance that runs the jobs of a function or of a name."""
    return what if isinstance(what, str) else capability_name(what)


def named_arguments(
    what: Callable[..., Any] | str, positional: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """All arguments by name.

    Raises:
        CapabilityInputError: a positional argument has no name, or an argument is given twice.
    """
    if not positional:
        return dict(named)
    if isinstance(what, str):
        raise CapabilityInputError(
            "arguments are passed by name when the capability is given by its name",
            fields_invalid=["arguments"],
        )
    names = [entry.name for entry in signature(what).parameters.values() if entry.kind in _BY_POSITION]
    if len(positional) > len(names):
        raise CapabilityInputError(
            f"`{what.__name__}` takes {len(names)} positional arguments, and {len(positional)} were passed",
            fields_invalid=["arguments"],
        )
    by_name = dict(zip(names, positional, strict=False))
    twice = sorted(by_name.keys() & named.keys())
    if twice:
        places = ", ".join(f"`{name}`" for name in twice)
        raise CapabilityInputError(f"{places} is passed twice", fields_invalid=twice)
    return by_name | dict(named)


def _callback_request(callback: "Callable[..., Any] | JobRequest | str | None") -> JobRequest | None:
    if callback is None or isinstance(callback, JobRequest):
        return callback
    return JobRequest(instance=instance_name(callback))


class Target:
    """What is submitted: a function with `@capability`, or the name of a capability or an instance."""

    def __init__(self, what: Callable[..., Any] | str | None) -> None:
        if isinstance(what, type):
            raise CapabilityInputError(
                f"`{what.__name__}` is a class; submit it by the name of its capability, and choose the method with"
                " `with_options(action=…)`",
                fields_invalid=["what"],
            )
        self._what = what

    def submit(
        self,
        queue: QueueClient,
        options: ClientOptions,
        positional: Sequence[Any],
        named: Mapping[str, Any],
    ) -> Job:
        """Submit a job with these arguments; see `Client.submit`."""
        what = self._what
        assert what is not None
        request, check = self._prepared(queue, options)
        request = check.as_json(request, named_arguments(what, positional, named))
        check_request(request)
        check.check(request)
        return queue.submit(request)

    def submit_many(
        self,
        queue: QueueClient,
        options: ClientOptions,
        calls: Iterable[Mapping[str, Any]],
        group: str | None,
        callback: "Callable[..., Any] | JobRequest | str | None",
    ) -> SubmittedBatch:
        """Submit a job for each mapping of arguments; see `Client.submit_many`."""
        what = self._what
        assert what is not None
        if options.get("key") is not None:
            raise CapabilityInputError(
                "many jobs cannot share one `key`; submit `JobRequest`s with a key each",
                fields_invalid=["key"],
            )
        first, check = self._prepared(queue, options)
        timed = with_timeout(first, self._manifest(queue.registry, first.instance))
        # Once for all of them. Without a limit it has to be said again below, where `None` means the default.
        first = first if timed.timeout is None else timed
        requests = [check.as_json(first, arguments) for arguments in calls]
        return submit_many(queue, requests, group=group, callback=_callback_request(callback))

    def _prepared(self, queue: QueueClient, options: ClientOptions) -> tuple[JobRequest, ArgumentCheck]:
        """A request without arguments, and the check of its arguments."""
        what = self._what
        assert what is not None
        name = options.get("instance") or instance_name(what)
        manifest = self._manifest(queue.registry, name)
        request = request_of(options, name)
        if manifest.parameters is None and not isinstance(what, str):
            # What the worker takes is not known yet, so the function in this process decides.
            return request, ArgumentCheck(name, {request.action: Signature(what).schema()})
        return request, queue.argument_check(manifest)

    def _manifest(self, registry: CapabilityRegistry, name: str) -> Manifest:
        try:
            manifest = registry.manifest(registry.capability(name))
        except CapabilityNotLoadedError as error:
            error.user_action = UserAction(ActionKind.FIX_CONFIGURATION, self._advice())
            raise
        if not (self._what is None or isinstance(self._what, str)):
            check_object(self._what, manifest)
        return manifest

    def _advice(self) -> str:
        file = getattr(getattr(self._what, "__code__", None), "co_filename", "FILE")
        return f"register it with `failwell capabilities add {file}`, and run it with `failwell workers run`"

    def result_of(self, job: Job) -> Any:
        """The result of an ended job, as a value of the function's return type; see `JobHandle.result`."""
        result = result_of(job)
        if self._what is None or isinstance(self._what, str):
            return result
        returns = get_type_hints(self._what).get("return")
        return from_json_value(returns, result) if has_own_form(returns) else result


def check_object(what: Callable[..., Any], manifest: Manifest) -> None:
    """Check that the capability of that name runs this function.

    Raises:
        CapabilityInputError: it runs another one, which has the same name.
    """
    module = what.__module__
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    registered_module, _, registered = manifest.object.partition(":")
    # The folders that modules are imported from may differ between the processes.
    if (registered_module.rpartition(".")[2], registered) != (module.rpartition(".")[2], what.__qualname__):
        raise CapabilityInputError(
            f"capability `{manifest.name}` runs `{manifest.object}`, not `{module}:{what.__qualname__}`; give one of"
            " them another name with `@capability(name=…)`",
            fields_invalid=["what"],
        )
