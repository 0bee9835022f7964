"""smolagents: what its agents raise around a model, a tool, or code that a model wrote."""

from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import envelopes, rows

TABLES: dict[str, Table] = {
    "smolagents": {
        **envelopes("smolagents", {
            "provider.unknown": "AgentGenerationError",
            "tool.failed": "AgentExecutionError AgentToolExecutionError",
            "internal.unknown": "AgentError",
        }),
        **rows("smolagents", {
            "provider.output_invalid": "AgentParsingError",
            "limit.turn_limit": "AgentMaxStepsError",
            "tool.input_invalid": "AgentToolCallError InterpreterError",
            "tool.timeout": "ExecutionTimeoutError",
            "tool.output_malformed": "SerializationError",
            "validation.config_invalid": "TypeHintParsingException",
            # How its interpreter leaves a loop or a function; one that escapes is a defect.
            "internal.bug": "BreakException ContinueException ReturnException FinalAnswerException",
        }),
    }
}  # fmt: skip
