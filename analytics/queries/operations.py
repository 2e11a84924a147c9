"""The operations of requests as the tables have them: in those of figures, the empty operation means `chat`."""

from __future__ import annotations

from typing import Final

from analytics.contracts import Operation

# The condition holds for rows of `requests` and of the rollups alike. Its parameter is that of `stored_operations`.
OF_OPERATION: Final = "operation IN {operation:Array(String)}"


def stored_operations(operation: str) -> list[str]:
    """Returns the values that stand for an operation in some table."""
    return ["", operation] if operation == Operation.CHAT else [operation]
