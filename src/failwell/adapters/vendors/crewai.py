"""crewai: its A2A errors by name, as those of the A2A SDK, and the few of its own."""

from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import envelopes, rows

TABLES: dict[str, Table] = {
    "crewai": {
        **envelopes("crewai", {
            "provider.unknown": "A2AError",
            "tool.failed": "ToolExecutionFailedError",
            "session.store_unavailable": "DatabaseOperationError",
            "provider.output_invalid": "ConverterError",
        }),
        **rows("crewai", {
            "provider.context_too_long": "LLMContextLengthExceededError",
            "provider.bad_request": "ArtifactNotFoundError ContentTypeNotSupportedError ContextNotFoundError "
                                    "InvalidParamsError InvalidRequestError JSONParseError TaskNotCancelableError "
                                    "TaskNotFoundError",
            "provider.capability_missing": "PushNotificationNotSupportedError SkillNotFoundError "
                                           "UnsupportedExtensionError UnsupportedOperationError",
            "provider.rejected": "AgentRepositoryError AuthenticatedExtendedCardNotConfiguredError "
                                 "MethodNotFoundError TransportNegotiationFailedError UnsupportedVersionError",
            "provider.auth": "AuthenticationRequiredError",
            "provider.permission": "AuthorizationFailedError",
            "provider.rate_limited": "RateLimitExceededError",
            "provider.outcome_unknown": "TaskTimeoutError A2APollingTimeoutError",
            "provider.output_invalid": "InvalidAgentResponseError",
            "provider.unavailable": "InternalError",
            "tool.denied": "LLMCallBlockedError FlowScriptExecutionDisabledError",
            "internal.bug": "ClientMethodMismatchError",
        }),
    }
}  # fmt: skip
