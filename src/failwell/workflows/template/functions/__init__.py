"""The filters, tests, methods and operators that templates call in Python."""
