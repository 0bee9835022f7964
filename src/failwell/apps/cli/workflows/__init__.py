"""Commands about workflow files and their recorded runs."""
