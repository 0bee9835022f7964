"""One typed error model, and the runtime that acts on it."""
