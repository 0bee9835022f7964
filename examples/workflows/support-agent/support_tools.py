"""The tools of the support agent."""


def find_order(number: str) -> dict[str, str]:
    """Find an order by its number."""
    return {"number": number, "status": "delivered", "note": "the customer says it is broken"}
