from __future__ import annotations

import re
from functools import lru_cache

# Hosts write one model in several ways: anthropic.claude-opus-4-8-v1:0, claude-opus-4-8@20260301, claude-opus-4-0.
_VERSION = re.compile(r"(?:-v\d+(?::\d+)?)$|(?:[-@](?:\d{8}|latest|default|0))$")
_FAMILY = "claude-"


@lru_cache(maxsize=4096)
def is_other_model(asked: str, answered: str) -> bool:
    """Compares only Claude models, which fall back to each other: most vendors' answers name versions, aliases and
    files of the same model."""
    if asked == answered:
        return False
    first, second = _base(asked), _base(answered)
    return first.startswith(_FAMILY) and second.startswith(_FAMILY) and first != second


def may_fall_back(model: str) -> bool:
    return _base(model).startswith(_FAMILY)


def _base(model: str) -> str:
    name = model.lower().rpartition("/")[2].rpartition("anthropic.")[2]
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name
