"""Microsoft's agent-framework and the autogen it follows: envelopes by who failed, the provider's exception inside."""

from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import envelopes, rows

_WHO = ("Agent", "ChatClient", "Integration")

TABLES: dict[str, Table] = {
    "agent_framework": {
        **envelopes("agent_framework", {
            "provider.auth": " ".join(f"{who}InvalidAuthException" for who in _WHO),
            "provider.bad_request": " ".join(f"{who}InvalidRequestException" for who in _WHO),
            "provider.output_invalid": " ".join(f"{who}InvalidResponseException" for who in _WHO),
            "provider.content_refused": " ".join(f"{who}ContentFilterException" for who in _WHO),
            "provider.unknown": "AgentException ChatClientException IntegrationException",
            "extension.lifecycle_failure": "IntegrationInitializationError",
            "tool.failed": "ToolException ToolExecutionException",
            "session.store_corrupt": "WorkflowCheckpointException",
            "internal.unknown": "AgentFrameworkException MiddlewareException WorkflowException "
                                "WorkflowRunnerException",
        }),
        **rows("agent_framework", {
            "provider.stream_interrupted": "ResponseInvalidatedException",
            "provider.output_invalid": "ContentError AdditionItemMismatch",
            "session.interaction_required": "UserInputRequiredException",
            "validation.config_invalid": "SettingNotFoundError",
            "limit.iterations": "WorkflowConvergenceException",
        }),
    },
    "autogen_core": rows("autogen_core", {
        "internal.bug": "CantHandleException NotAccessibleError",
        "tool.unavailable": "UndeliverableException",
        "tool.denied": "MessageDroppedException",
    }),
}  # fmt: skip
