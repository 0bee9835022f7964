"""What a user's own tests need: builders for reports and faults. Standard library alone.

Nothing that is shipped for production imports this room.
"""
