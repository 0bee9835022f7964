"""Programs that keep the project's papers true. Not shipped."""
