"""Which model sets the price of an answer: the one that was asked, or the one that the vendor chose instead."""

from __future__ import annotations

import re
from functools import lru_cache

# Hosts write one model in several ways: anthropic.claude-opus-4-8-v1:0, claude-opus-4-8@20260301, claude-opus-4-0.
_VERSION = re.compile(r"(?:-v\d+(?::\d+)?)$|(?:[-@](?:\d{8}|latest|default|0))$")
_FAMILY = "claude-"


@lru_cache(maxsize=4096)
def is_other_model(asked: str, answered: str) -> bool:
    """Returns whether the vendor had another model answer than the one that was asked. Answers of most vendors name
    versions, aliases and files of the same model, so this is known of Claude's alone, which fall back to each other."""
    if asked == answered:
        return False
    first, second = _base(asked), _base(answered)
    return first.startswith(_FAMILY) and second.startswith(_FAMILY) and first != second


def may_fall_back(model: str) -> bool:
    """Returns whether the vendor may have another model answer than this one."""
    return _base(model).startswith(_FAMILY)


def _base(model: str) -> str:
    name = model.lower().rpartition("/")[2].rpartition("anthropic.")[2]
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name
