"""Commands about errors: describe, classify and explain them, and test against them."""
