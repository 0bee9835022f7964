"""Commands that check, show and run workflow files."""
