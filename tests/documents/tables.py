from __future__ import annotations

from collections.abc import Sequence


def differences(page: str, found: Sequence[str], expected: Sequence[str]) -> str:
    parts = [f"the table of {page} is not current"]
    parts += [
        f"put in, behind {expected[place - 1].split(' | ')[0] if place else 'the head'}:\n{line}"
        for place, line in enumerate(expected)
        if line not in found
    ]
    parts += [f"take out:\n{line}" for line in found if line not in expected]
    if len(parts) == 1:
        parts.append("put the rows into this order:\n" + "\n".join(expected))
    return "\n".join(parts)
