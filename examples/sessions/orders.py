"""The tools of the agent."""

ORDERS = {"A-17": "came broken", "B-3": "is on its way"}


def find_order(number: str) -> str:
    """Find an order."""
    return f"{number} {ORDERS.get(number, 'is unknown')}"


def refund(number: str) -> str:
    """Pay an order back."""
    return f"{number} is paid back"
