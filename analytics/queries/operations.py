"""Operations as the tables have them: in those of figures, the empty operation means `chat`."""

from __future__ import annotations

from typing import Final

from analytics.request_log.record import Operation

# The condition holds for rows of `requests` and of the rollups alike. Its parameter is that of `stored_operations`.
OF_OPERATION: Final = "operation IN {operation:Array(String)}"


def condition(operation: str, table: str = "t") -> str:
    """A condition on rows `table` of requests or of a rollup; an empty operation matches all."""
    return f"{table}.{OF_OPERATION}" if operation else "1"


def stored_operations(operation: str) -> list[str]:
    return ["", operation] if operation == Operation.CHAT else [operation]
