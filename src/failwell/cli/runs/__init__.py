"""Commands about recorded runs and their gates."""
