"""Splits a URL into the parts that can carry data, alone and joined, with their percent encoding undone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gateway.guardrails.detectors.encodings import unquoted

# RFC 3986, appendix B: host, path, query, fragment.
_PARTS = re.compile(r"(?:[^:/?#]+:)?//([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(\d+)")
_LONG_LABEL = 16


class UrlParts(NamedTuple):
    """The decoded parts of a URL. `values` come from the query, the fragment and long labels of the host, `segments`
    from the path. `wholes` are each of these joined, for data that was split; the query's values are also joined in the
    order of their names."""

    values: tuple[str, ...]
    segments: tuple[str, ...]
    wholes: tuple[str, ...]


def url_parts(url: str) -> UrlParts:
    """Returns the parts of a URL that has a host; any other text is a single value."""
    parts = _PARTS.match(url)
    if parts is None:
        return UrlParts((url,), (), ())
    authority, path, query, fragment = parts.groups("")
    named = _parameters(query) if query else []
    in_query = [value for _, value in named]
    by_name = [value for _, value in sorted(named, key=_in_order)] if len(named) > 1 else []
    segments = list(map(unquoted, path.split("/")))
    labels = _host(authority).split(".")[:-2]
    values = [*in_query, _form(fragment), *(label for label in labels if len(label) >= _LONG_LABEL)]
    wholes = map("".join, (in_query, by_name, segments, labels, values))
    return UrlParts(_each_once(values), _each_once(segments), _each_once(wholes))


def _host(authority: str) -> str:
    return authority.rpartition("@")[2].partition(":")[0].lower()


def _parameters(query: str) -> list[tuple[str, str]]:
    """Returns (name, value) for each parameter; a parameter without a name is its own value."""
    pieces = [piece.partition("=") for piece in query.replace(";", "&").split("&")]
    return [(name, _form(value if separator else name)) for name, separator, value in pieces]


def _form(text: str) -> str:
    """Decodes a form-encoded text: a plus sign is a blank."""
    return unquoted(text.replace("+", " "))


def _in_order(named: tuple[str, str]) -> list[tuple[int, str]]:
    """Sorts numbered names by number: `p9` before `p10`."""
    name, _ = named
    if not _NUMBER.search(name):
        return [(-1, name)]
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in _NUMBER.split(name)]


def _each_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(values)))
