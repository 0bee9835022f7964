"""The generated half of the documentation: every page of docs/reference is a function here."""
