"""prefect: states of runs that were asked for a result, its API by status, and signals that end a run."""

from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import envelopes, rows

TABLES: dict[str, Table] = {
    "prefect": {
        **envelopes("prefect", {
            "internal.unknown": "PrefectException FailedRun UpstreamTaskError ScriptError OrchestrationError",
            "worker.crashed": "CrashedRun",
            "worker.start_failed": "InfrastructureError",
        }),
        **rows("prefect", {
            "cancel.run": "CancelledRun Abort TerminationSignal ExternalSignal",
            "session.interaction_required": "PausedRun Pause",
            "limit.run_timeout": "FlowPauseTimeout FlowRunWaitTimeout",
            "provider.stream_interrupted": "FlowRunWatchError",
            "worker.transient": "UnfinishedRun",
            "worker.not_loaded": "InfrastructureNotFound",
            "worker.start_failed": "InfrastructureNotAvailable",
            "session.no_snapshot": "MissingResult",
            "provider.rejected": "ObjectNotFound ObjectNotFoundError MissingVariableError",
            "provider.bad_request": "ObjectAlreadyExists EventTooLarge FlowRunGraphTooLarge",
            "provider.quota_exhausted": "ObjectLimitReached",
            "provider.permission": "ObjectUnsupported ProtectedBlockError",
            "provider.capability_missing": "BlockMissingCapabilities",
            "validation.input_invalid": "ParameterTypeError ParameterBindError InvalidRepositoryURLError "
                                        "MappingLengthMismatch MappingMissingIterable InvalidNameError",
            "validation.config_invalid": "ConfigurationError ProfileSettingsValidationError MissingProfileError "
                                         "MissingFlowError UnspecifiedFlowError",
            "extension.dependency_missing": "PrefectImportError",
            "validation.shape_invalid": "SerializationError",
            "internal.bug": "MissingContextError SignatureMismatchError ReservedArgumentError NotPausedError "
                            "HashError PrefectSignal",
        }),
    }
}  # fmt: skip
