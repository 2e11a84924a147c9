"""Checks ids of sessions and requests, which clients choose, in the paths of URLs."""

from __future__ import annotations

from core.errors import ValidationError


def require_id(name: str, value: str, max_length: int) -> None:
    """Refuses what no stored id can be: longer than `most` characters, or with a NUL, which no database takes."""
    if len(value) > max_length:
        problem = f"Has more than {max_length} characters."
    elif "\x00" in value:
        problem = "Null characters are not allowed."
    else:
        return
    raise ValidationError(f"{name}: {problem}", details={name: [problem]})
