"""Our kinds beside the names that five other systems have for the same failures.

A name is written as its system writes it. Where a system uses one word in several lists, the
list comes first: `sandbox/timeout` is not `provider/timeout`. Each name stands under one kind
only, the one that fits best; a kind without a counterpart is left out.
"""

from collections.abc import Mapping

from failwell.fault.classes import family

Names = Mapping[str, tuple[str, ...]]
"""Our kind → what one system calls it."""


def _names(table: Mapping[str, str]) -> Names:
    return {kind: tuple(names.split()) for kind, names in table.items()}


_CJM_SUBSTRATE = _names({
    "resource.gpu_memory": "resource/gpu_vram_mb",
    "resource.system_memory": "resource/system_ram_mb",
    "resource.disk": "resource/disk_mb",
    "resource.exhausted": "CapabilityResourceError category/resource",
    "worker.oom": "WorkerOOMError",
    "worker.transient": "CapabilityTransientError category/transient",
    "worker.fatal": "CapabilityError CapabilityFatalError category/fatal",
    "worker.not_loaded": "CapabilityNotLoadedError",
    "worker.disabled": "CapabilityDisabledError",
    "worker.timeout": "CapabilityTimeoutError",
    "cancel.job": "CapabilityCancelledError",
    "validation.shape_invalid": "CompositionValidationError",
    "validation.config_invalid": "CapabilityConfigError WorkspaceError",
    "validation.input_invalid": "CapabilityInputError category/user_input",
    "internal.template_error": "CompositionBindingError",
})  # fmt: skip

_STUD_CLI = _names({
    "provider.rate_limited": "ProviderTransient/RateLimited",
    "provider.unavailable": "ProviderTransient/Provider5xx ProviderTransient/SummarizeFailed",
    "provider.timeout": "ProviderTransient/NetworkTimeout",
    "provider.connection": "ProviderTransient/MCPConnectionLost",
    "provider.stream_interrupted": "ProviderTransient/StreamError",
    "provider.auth": "ProviderTransient/Unauthorized",
    "provider.rejected": "ProviderTransient/EndpointNotFound",
    "provider.unknown": "ProviderTransient/ProviderProcessFailed",
    "provider.capability_missing": """
        ProviderCapability/MissingStreaming ProviderCapability/MissingToolCalling
        ProviderCapability/MissingCapability""",
    "provider.context_too_long": "ProviderCapability/ContextWindowTooSmall Validation/ContextOverflow",
    "provider.output_invalid": "ProviderCapability/OutputMalformed Session/ProviderProtocolViolation",
    "tool.denied": """
        ToolTerminal/Forbidden ToolTerminal/ApprovalDenied ToolTerminal/CommandRejected
        ToolTerminal/NetworkDenied Validation/GrantNotFound Validation/GrantAlreadyConsumed
        Validation/GrantStageExpired Session/MCPUntrusted ExtensionHost/SlotAccessDenied""",
    "tool.failed": """
        ToolTerminal/ToolExecutionFailed ToolTerminal/MCPToolFailed
        ToolTerminal/ApprovalKeyDerivationFailed ToolTransient/ResourceFetchFailed""",
    "tool.timeout": "ToolTransient/ExecutionTimeout",
    "tool.busy": "ToolTransient/ResourceBusy",
    "tool.input_invalid": "ToolTerminal/InputInvalid ToolTerminal/AmbiguousMatch",
    "tool.output_malformed": """
        ToolTerminal/OutputMalformed ToolTerminal/MCPResourceEmpty ToolTerminal/ResourceOverBytesCap""",
    "tool.not_found": "ToolTerminal/ToolNotRegistered",
    "tool.unavailable": "Validation/UnsupportedPlatform",
    "limit.turn_limit": "ExtensionHost/LoopBoundExceeded Session/ToolExecutionFailed",
    "cancel.session": "Cancellation/SessionCancelled",
    "cancel.turn": "Cancellation/TurnCancelled",
    "cancel.stage": "Cancellation/StageCancelled",
    "cancel.tool": "Cancellation/ToolCancelled ToolTerminal/Subagent/Aborted",
    "session.manifest_drift": """
        Session/ManifestDrift Session/SlotDriftRejected Session/SlotMigrationFailed
        ExtensionHost/IntegrityFailed""",
    "session.store_unavailable": """
        Session/StoreUnavailable Session/ApprovalCacheUnavailable Session/TrustStoreUnavailable
        Session/MCPTrustUnavailable Session/StateUnavailable Session/OrderingManifestUnreadable""",
    "session.store_corrupt": "Validation/ManifestShapeInvalid Validation/SlotVersionMissing",
    "session.resume_mismatch": "Session/ResumeMismatch",
    "session.no_snapshot": "Session/NoSnapshot",
    "session.locked": "ExtensionHost/ConcurrentTurnForbidden",
    "session.interaction_required": """
        Session/NoInteractorAttached Session/ProjectTrustRequired Validation/NoInteractorsAttached
        Validation/HeadlessInteractionRequired Validation/HeadlessTrustRequired
        ProviderCapability/MissingInteractor""",
    "session.illegal_transition": """
        Session/IllegalTransition Session/InteractionAlreadyAnswered Session/ValidationNotRun
        Validation/ContextMutationForbidden Validation/SMAlreadyAttached""",
    "session.secret_leak": """
        Session/SecretLeak Validation/LLMContextLeak Validation/ContextContainsForbiddenSource""",
    "validation.shape_invalid": """
        Validation/ShapeInvalid Validation/DiscoveryManifestInvalid Validation/FragmentShapeInvalid
        Validation/StageDefinitionInvalid Validation/StageCompletionSchemaInvalid
        Validation/StageJoinDangling Validation/TrustEntryInvalid Validation/ApprovalKeyInvalid
        Validation/InteractionKindUnknown Validation/InteractionPayloadMismatch
        Validation/MalformedSecretReference Validation/OrderingManifestMalformed
        Validation/PromptSourceMismatch Validation/ResourceBindingInvalid
        ExtensionHost/InvalidParallelPlan""",
    "validation.config_invalid": """
        Validation/ConfigSchemaViolation Validation/SettingsShapeInvalid Validation/UnknownTopLevelKey
        Validation/UnknownConfigKey Validation/ScopeShapeInvalid Validation/EnvNameNotSet
        Validation/EnvNameUndeclared Validation/MissingHeadlessDefaults Validation/RegistrationConflict
        Validation/TrustScopeViolation Validation/UntrustedProjectCachePath
        Validation/AllowlistWithoutMode Validation/InvalidSecurityMode Validation/PolicyInvalid
        Validation/StageTurnCapTooLow Validation/ModelWindowInvalid Validation/HookInvalidAttachment
        Validation/HookSlotUnknown Validation/OrderingManifestDuplicateExtId
        Validation/MCPServerConfigInvalid Validation/IntegrityTokenMissing""",
    "validation.contract_version_mismatch": """
        Validation/ContractVersionMismatch Validation/RequiredCoreVersionMismatch
        Validation/ContractVersionBumpInvalid Validation/Deprecated
        Validation/DeprecationWindowInvalid""",
    "validation.input_invalid": """
        Validation/InputInvalid Validation/ArgumentMissing Validation/InvalidMode
        Validation/UnknownFlag Validation/UnsupportedFlag Validation/LaunchFailure
        Validation/ProjectPathInvalid Validation/TimeoutMsInvalid Validation/CommandUnknown
        Validation/CommandAmbiguous Validation/CommandNameInvalid Validation/PromptMissing
        Validation/PromptUriMalformed Validation/BindingCapExceeded""",
    "validation.path_not_found": """
        ToolTerminal/NotFound Validation/ResourceMissing Validation/InstallSourceInvalid""",
    "extension.lifecycle_failure": """
        ExtensionHost/LifecycleFailure ExtensionHost/LifecyclePhaseInvalid ExtensionHost/StartupFailure
        ExtensionHost/ContextProviderFailed ExtensionHost/CommandExecFailed
        ExtensionHost/HookGuardFailed ExtensionHost/HookTransformFailed""",
    "extension.dependency_cycle": "ExtensionHost/DependencyCycle",
    "extension.dependency_missing": """
        ExtensionHost/DependencyMissing ExtensionHost/StageNotRegistered
        ExtensionHost/AssemblerUnavailable Validation/ExtensionNotFound
        Validation/MCPServerNotRegistered""",
    "internal.template_error": "Validation/StageCtxUnresolved",
    "internal.bug": """
        Validation/InternalPipelineFailure Validation/ProjectRootInvariantViolated
        Validation/ModeInvariantViolated Validation/UnknownAuditClass
        Validation/AuditWithoutCorrelation Validation/SpanWithoutCorrelation
        ExtensionHost/NonMonotonicClock ExtensionHost/ReentrantDelivery
        ExtensionHost/OrderingInvariantViolated ExtensionHost/StackInvariantViolated
        ExtensionHost/NotImplemented""",
    "subworkflow.failed": "ExtensionHost/ParallelSiblingFailure ExtensionHost/JoinPreconditionViolated",
})  # fmt: skip

_PIPELEX = _names({
    "provider.rate_limited": "provider.rate_limited user_action/wait_and_retry",
    "provider.unavailable": "provider.unavailable provider.failed category/transient",
    "provider.timeout": "provider.timeout",
    "provider.outcome_unknown": "provider.outcome_unknown category/ambiguous",
    "provider.quota_exhausted": "provider.quota_exhausted category/capacity user_action/check_billing",
    "provider.auth": "provider.credential_refused user_action/check_credentials",
    "provider.model_not_found": """
        model.unavailable user_action/change_model ModelNotFoundError LLMModelNotFoundError
        ImgGenModelNotFoundError ExtractModelNotFoundError SearchModelNotFoundError
        JudgmentModelNotFoundError ModelWaterfallError PipeOperatorModelAvailabilityError""",
    "provider.bad_request": "user_action/change_input ImgGenPromptError ImgGenParameterError",
    "provider.context_too_long": """
        model.context_exceeded stop/context_window_exceeded truncation/context_window""",
    "provider.content_refused": """
        model.content_refused category/content stop/refused LLMCompletionRefusedError""",
    "provider.output_truncated": """
        stop/truncated truncation/max_tokens LLMCompletionTruncatedError ImgGenOutputTruncatedError""",
    "provider.output_invalid": "model.output_schema_mismatch model.no_result provider.response_invalid",
    "provider.rejected": "category/configuration",
    "provider.unknown": """
        category/unknown user_action/contact_support CogtError LLMCompletionError
        ImgGenGenerationError ExtractJobFailureError SearchJobFailureError JudgmentJobFailureError""",
    "validation.shape_invalid": """
        validation/blueprint_validation validation/pipe_factory validation/pipe_validation
        validation/dry_run""",
    "validation.config_invalid": """
        LLMConfigError SdkTypeError credentials/var_not_found credentials/unknown_var_prefix
        credentials/var_fallback_pattern credentials/not_resolved_on_keyless_boot""",
    "validation.input_invalid": """
        input.too_large input.file_type_unsupported input.file_unreadable input.url_unreachable
        ExtractInputFormatError""",
    "validation.path_not_found": "input.reference_not_found",
    "internal.schema_violation": "PipeExecutionError",
    "internal.bug": "runtime.unexpected PipelexUnexpectedError",
    "internal.unknown": "user_action/unknown PipeRunError PipeRouterError PipelineExecutionError",
    "subworkflow.failed": "WorkflowExecutionError UnrecoverableWorkflowFailureError",
})  # fmt: skip

_CONDUCTOR = _names({
    "provider.exhausted": "provider.exhausted",
    "provider.rejected": "provider.rejected",
    "internal.script_error": "internal.script_error",
    "internal.schema_violation": """
        internal.schema_violation internal.script_error_transport notification_failed""",
    "internal.undeclared_kind": "internal.undeclared_kind",
    "subworkflow.failed": "subworkflow.failed",
    "subworkflow.terminated": "subworkflow.terminated",
    "retry.exhausted": "retry.exhausted",
    "halt.intentional": "halt.intentional",
})  # fmt: skip

_RELAVIUM = _names({
    "provider.rate_limited": "provider_rate_limit provider/rate_limit",
    "provider.overloaded": "provider/overloaded",
    "provider.unavailable": "provider_unavailable",
    "provider.timeout": "provider/timeout",
    "provider.connection": "provider/transport",
    "provider.auth": "provider_auth provider/auth",
    "provider.model_not_found": "config/unknown_model",
    "provider.capability_missing": "config/unsupported_tool_schema config/unsupported_capability",
    "provider.bad_request": "provider/bad_request",
    "provider.content_refused": "content_filter provider/content_filter",
    "provider.unknown": "provider/unknown",
    "tool.denied": """
        tool_denied tool/tool_denied policy/not_granted policy/provider_executed
        policy/command_not_allowed policy/domain_not_allowed policy/insecure_url
        policy/gate_required policy/media_scope_denied approval/user_rejected
        approval/no_approval_hook approval/approval_error egress/insecure_url egress/blocked_host""",
    "tool.failed": """
        tool_failed tool/execution_failed egress/too_many_redirects egress/too_large
        egress/bad_status egress/network""",
    "tool.input_invalid": "tool/invalid_args",
    "tool.not_found": "tool/unknown_tool",
    "tool.unavailable": "tool_unavailable tool/capability_unavailable interpolation/read_file_unavailable",
    "limit.budget_exceeded": "budget_exceeded",
    "limit.run_timeout": "run_timeout",
    "limit.turn_limit": "turn_limit",
    "cancel.turn": "provider/cancelled",
    "cancel.tool": "tool/cancelled",
    "cancel.run": "cancelled interpolation/aborted",
    "session.resume_mismatch": "EngineStateError/workflow_mismatch",
    "session.no_snapshot": "EngineStateError/unknown_run EngineStateError/unknown_gate",
    "session.locked": "EngineStateError/run_already_active",
    "session.interaction_required": "EngineStateError/pending_gate_requires_decision",
    "session.illegal_transition": """
        EngineStateError/run_already_terminal EngineStateError/run_not_paused
        SessionStateError/not_started SessionStateError/already_started SessionStateError/not_active""",
    "session.secret_leak": "parse/secret_interpolation",
    "validation.shape_invalid": """
        parse/invalid_yaml parse/schema_validation parse/invalid_graph graph/cycle
        graph/unknown_edge_target graph/invalid_handle graph/mismatched_branch_target
        graph/dangling_ref parse/agent_syntax parse/agent_validation""",
    "validation.config_invalid": "config/invalid_base_url cli/config_error",
    "validation.input_invalid": """
        validation EngineStateError/invalid_decision cli/invalid_invocation cli/not_implemented""",
    "internal.template_error": """
        interpolation/unresolved_reference interpolation/unknown_namespace
        interpolation/unknown_filter interpolation/filter_arity interpolation/filter_type
        interpolation/unserializable interpolation/invalid_path sandbox/syntax sandbox/runtime
        sandbox/result_type sandbox/non_serializable""",
    "internal.sandbox_error": "sandbox_error sandbox/memory sandbox/stack sandbox/scope",
    "internal.sandbox_timeout": "sandbox/timeout",
    "internal.io_error": "interpolation/read_file_failed",
    "internal.bug": """
        internal cli/internal RunLoopInvariantError/both_correlation_keys
        RunLoopInvariantError/no_correlation_key RunLoopInvariantError/concurrent_consumer
        RunLoopInvariantError/media_store_unavailable""",
})  # fmt: skip

ROSETTA: Mapping[str, Names] = {
    "cjm-substrate": _CJM_SUBSTRATE,
    "stud-cli": _STUD_CLI,
    "pipelex": _PIPELEX,
    "conductor": _CONDUCTOR,
    "relavium": _RELAVIUM,
}
"""System → our kind → what that system calls it."""


def translate_name(name: str) -> list[tuple[str, str]]:
    """Every (system, kind) that `name` can mean; case does not matter, nor does the list before a slash.

    A short name may mean several things: `timeout` is a provider's and a sandbox's. What a system
    calls exactly so comes first.
    """
    asked = name.casefold()
    exact: list[tuple[str, str]] = []
    short: list[tuple[str, str]] = []
    for system, table in ROSETTA.items():
        for kind, names in table.items():
            theirs = [known.casefold() for known in names]
            if asked in theirs:
                exact.append((system, kind))
            elif any(known.endswith(f"/{asked}") for known in theirs):
                short.append((system, kind))
    return exact + short


def stud_class(kind: str) -> str | None:
    """Which of stud-cli's eight classes `kind` belongs to, or `None` if it has no counterpart there.

    Refused keys and missing models stand under ProviderCapability: no wait mends a 401 or a 404.
    """
    return family(kind)
