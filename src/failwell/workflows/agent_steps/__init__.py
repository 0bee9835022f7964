"""Agent and tool steps: what one visit of a step does with models, tools and people."""
