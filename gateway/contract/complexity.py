"""Estimates the cost of checking a text against a schema.

A validator follows every reference anew, so a few lines of schema can keep it busy for hours.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

# The limit of the number of schemas times the bytes of the text: some 20 ms at worst, and mostly far less.
_MAX_WORK = 1_000_000
_MAX_TEXT_BYTES = 64 * 1024
_MAX_SCHEMA_BYTES = 16 * 1024
_MAX_SCHEMAS = 5_000
_MAX_NESTING = 60
# `pattern` keywords may backtrack; the other keywords lead to schemas that cannot be counted beforehand.
_UNBOUNDED_KEYWORDS = frozenset({"pattern", "patternProperties", "$dynamicRef", "$recursiveRef", "$id", "id"})


class _UnboundedError(Exception):
    pass


def is_cheap(schema: bytes, size: int) -> bool:
    if len(schema) > _MAX_SCHEMA_BYTES or size > _MAX_TEXT_BYTES:
        return False
    schemas = _schemas(schema)
    return schemas is not None and schemas * size <= _MAX_WORK


@lru_cache(maxsize=256)
def _schemas(schema: bytes) -> int | None:
    try:
        root = json.loads(schema)
        counted = _Counter(root).count(root, 0)
    except (ValueError, RecursionError, _UnboundedError):
        return None
    return counted if counted <= _MAX_SCHEMAS else None


class _Counter:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, int] = {}

    def count(self, node: Any, depth: int) -> int:
        if depth > _MAX_NESTING:
            raise _UnboundedError
        if isinstance(node, list):
            return sum(self.count(item, depth + 1) for item in node)
        if not isinstance(node, dict):
            return 1
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = self._count_schema(node, depth)
        return known

    def _count_schema(self, node: dict[str, Any], depth: int) -> int:
        if not _UNBOUNDED_KEYWORDS.isdisjoint(node):
            raise _UnboundedError
        counted = 1 + sum(self.count(item, depth + 1) for item in node.values())
        # A reference to an enclosing schema recurses until the maximum depth ends it.
        return counted + self.count(self._referred(node["$ref"]), depth + 1) if "$ref" in node else counted

    def _referred(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _UnboundedError
        found = self._root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                raise _UnboundedError
            found = found[name]
        return found
