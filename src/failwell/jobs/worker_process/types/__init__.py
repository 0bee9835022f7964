"""Types of configurations, arguments and results: their JSON Schema, and their values to and from JSON."""
