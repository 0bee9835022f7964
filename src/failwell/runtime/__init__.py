"""Acting in this process: retry, fallback chain, budgets, cancellation, batches.

The only room of the core that waits. Imports `failwell.decision` and below, and not `failwell.delivery`,
which is on the same level.
"""

from failwell._moved import keep_old_modules

keep_old_modules(
    __name__,
    {
        "bridges": "failwell.integrations",
        "bridges.celery": "failwell.integrations.celery",
        "bridges.langgraph": "failwell.integrations.langgraph",
        "bridges.pydantic_ai": "failwell.integrations.pydantic_ai",
        "bridges.stamina": "failwell.integrations.stamina",
        "bridges.temporal": "failwell.integrations.temporal",
        "bridges.tenacity": "failwell.integrations.tenacity",
        "chain": "failwell",
        "guard": "failwell.policies",
        "purse": "failwell.policies",
    },
    renamed={"purse": {"Purse": "SharedBudget"}},
)
