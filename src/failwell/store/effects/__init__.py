"""State that several processes share: limits, budgets and claims of effects, in SQLite or in Redis."""
