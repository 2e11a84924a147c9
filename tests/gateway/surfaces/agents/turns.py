"""The form of recorded turns of a coding agent, and what both agents' turns are made of.

The texts are our own; the fields, the headers and the order of events are those that the agents and their vendors send.
"""

from __future__ import annotations

import base64
import json
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

TURNS = 30
SESSION = "0199f2a4-7c31-7d02-b5e8-3f6a9c1d2e4b"

Json = dict[str, Any]

# Contents that are easily changed on the way: quotes, escapes, other scripts, an emoji of two code units, a lone slash.
_FILES = (
    (
        "src/cart.py",
        'def total(items):\n    """Return the sum, e.g. "3.50 €"."""\n    return sum(item.price for item in items)\n',
    ),
    (
        "src/мир.ts",
        "export const greet = (name: string) => `Привет, ${name} 👋`;\n// \\u00e9 stays \\u00e9, and </script> too\n",
    ),
    ("tests/test_cart.py", "def test_total():\n\tassert total([]) == 0  # 合計\n\tassert 1e-7 < 1E+2\n"),
)


@dataclass(frozen=True)
class Turn:
    """One request of an agent with its answer, a stream. `body` are the bytes that the agent sends, `cost` is what the
    vendor charges for the answer in US dollars, `prompt`, `read`, `written` and `output` are its tokens."""

    path: str
    headers: dict[str, str]
    body: bytes
    answer: bytes
    cost: Decimal
    prompt: int
    read: int
    written: int
    output: int


def compact(value: Any) -> bytes:
    """Returns the JSON as JavaScript and Rust write it: without blanks, with all characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def event(kind: str, fields: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), compact({"type": kind, **fields}))


def opaque(seed: str, size: int = 180) -> str:
    """Returns a text like a signature or encrypted reasoning: base64, the same for the same seed."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def file_of(turn: int) -> tuple[str, str]:
    return _FILES[turn % len(_FILES)]


def pieces(text: str, size: int = 7) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def dollars(tokens: int, per_million: str) -> Decimal:
    return Decimal(per_million) * tokens / 1_000_000
