"""Changes JSON documents and bytes; each change is drawn from a `random.Random`, so that the same number makes the same
change.

The hostile values are known to break parsers: numbers beyond any type, lone surrogates, NUL, deep nesting, names of
Python's own attributes, texts that end lines or headers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from tests.integrations.adapters.hostile import places, swapped

# The number of changes is mostly one: a case with many changes is refused for the first of them, and shows nothing of
# the others.
CHANGES = (1, 1, 1, 2, 4)
ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\U0001f468‍\U0001f469",
    "a\r\nx-injected: 1",
    "data: [DONE]\n\n",
    "../../etc/passwd",
    "' OR 1=1 --",
    "{{ name }}",
    "{0.__class__}",
    "%s%n",
    "1e309",
    "NaN",
    "x" * 70_000,
    "00000000-0000-0000-0000-000000000000",
    "9999-12-31T23:59:60Z",
)
ODD_NUMBERS = (0, -1, 1.5, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 5e-324)
ODD_NAMES = ("", "__proto__", "__class__", "type", "id", "content", "\x00", "name ", "NAME", "a.b", "a[0]")


def mutated_json(random: Random, document: Any, donors: Sequence[Any]) -> Any:
    changed = document
    for _ in range(random.choice(CHANGES)):
        path = random.choice(list(places(changed)))
        changed = random.choice(_JSON_CHANGES)(random, changed, path, donors)
    return changed


def mutated_bytes(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    changed = data
    for _ in range(random.choice(CHANGES)):
        changed = random.choice(_BYTE_CHANGES)(random, changed, donors)
    return changed


def encoded(document: Any) -> bytes:
    """Lone surrogates stay escapes, as a malicious client would write them."""
    return json.dumps(document).encode()


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _put_odd_value(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    kinds: list[Any] = [None, True, False, [], {}, random.choice(ODD_TEXTS), random.choice(ODD_NUMBERS)]
    return swapped(document, path, random.choice(kinds))


def _drop(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    return swapped(document, path, None, drop=True) if path else {}


def _wrap(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    value = value_at(document, path)
    return swapped(document, path, random.choice([[value], [value, value], {"value": value}, encoded_text(value)]))


def _nest(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    deep: Any = value_at(document, path)
    as_list = random.random() < 0.5
    for _ in range(random.choice((5, 40, 90))):
        deep = [deep] if as_list else {"a": deep}
    return swapped(document, path, deep)


def _multiply(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    value = value_at(document, path)
    if not isinstance(value, list) or not value:
        return _wrap(random, document, path, donors)
    return swapped(document, path, [deepcopy(item) for item in value] * random.choice((2, 30, 1001)))


def _rename(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    value = value_at(document, path)
    if not isinstance(value, dict) or not value:
        return _put_odd_value(random, document, path, donors)
    name = random.choice(list(value))
    renamed = {key: item for key, item in value.items() if key != name}
    return swapped(document, path, {**renamed, random.choice((*ODD_NAMES, name.upper())): value[name]})


def _add(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    value = value_at(document, path)
    if not isinstance(value, dict):
        return _put_odd_value(random, document, path, donors)
    return swapped(document, path, {**value, random.choice(ODD_NAMES): random.choice(ODD_TEXTS)})


def _splice(random: Random, document: Any, path: tuple[Any, ...], donors: Sequence[Any]) -> Any:
    donor = random.choice(donors)
    return swapped(document, path, deepcopy(value_at(donor, random.choice(list(places(donor))))))


def encoded_text(value: Any) -> str:
    return json.dumps(value)


_JSON_CHANGES: tuple[Callable[[Random, Any, tuple[Any, ...], Sequence[Any]], Any], ...] = (
    _put_odd_value,
    _put_odd_value,
    _put_odd_value,
    _drop,
    _wrap,
    _nest,
    _multiply,
    _rename,
    _add,
    _splice,
)


def _slice(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 2, 8, 64, 512)))


def _cut(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    start, end = _slice(random, data)
    return data[:start] + data[end:]


def _truncate(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    return data[: random.randint(0, len(data))]


def _double(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    start, end = _slice(random, data)
    return data[:end] + data[start:end] * random.choice((1, 3, 100)) + data[end:]


def _flip(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _insert(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    at = random.randint(0, len(data))
    odd = (b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\r\n\r\n", b"\n\n", b"{", b"]", b'"', b"\xff" * 9)
    return data[:at] + random.choice(odd) + data[at:]


def _splice_bytes(random: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    donor = random.choice(donors)
    start, end = _slice(random, donor)
    at = random.randint(0, len(data))
    return data[:at] + donor[start:end] + data[at:]


_BYTE_CHANGES: tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...] = (
    _cut,
    _truncate,
    _double,
    _flip,
    _flip,
    _insert,
    _splice_bytes,
)
