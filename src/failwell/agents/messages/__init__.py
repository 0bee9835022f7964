"""The message formats of the providers: one file per format, and one shape for all of them in `turns`."""
