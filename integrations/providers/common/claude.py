from __future__ import annotations

from functools import lru_cache

CLAUDE = "anthropic-claude-v1"
"""The `format` of reasoning that Claude signed, which is valid at every host
(https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""

# The families Fable and Mythos had no version in their first models' names, and always think.
_YOUNG_FAMILIES = ("fable", "mythos")
_FAMILIES = ("opus", "sonnet", "haiku", *_YOUNG_FAMILIES)

Version = tuple[int, int]
UNKNOWN: Version = (0, 0)


@lru_cache(maxsize=1024)
def family_and_version(model: str) -> tuple[str, Version]:
    """Reads `claude-3-5-sonnet-20241022`, `claude-opus-4-1@20250805`, `claude-sonnet-5`,
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`; empty and UNKNOWN if the name shows neither."""
    words = model.lower().rpartition("/")[2].partition("@")[0].replace(".", "-").split("-")
    if "claude" not in words:
        return "", UNKNOWN
    family = next((word for word in words if word in _FAMILIES), "")
    # Numbers of a version have one or two digits; longer ones are dates.
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    if numbers:
        return family, (numbers[0], numbers[1] if len(numbers) > 1 else 0)
    return family, (5, 0) if family in _YOUNG_FAMILIES else UNKNOWN


def thinking_off(family: str, version: Version) -> str:
    """The `type` that turns thinking off, empty if nothing can:
    https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5, …/sonnet-5-5/whats-new-sonnet-5-5"""
    if family in _YOUNG_FAMILIES or (family == "opus" and version >= (5, 5)):
        return ""
    return "between_tools" if family == "sonnet" and version >= (5, 5) else "disabled"


def takes_forced_tools(family: str, version: Version) -> bool:
    return version < (5, 1) or family == "haiku"


def min_cached_tokens(family: str, version: Version) -> int:
    """https://platform.claude.com/docs/en/build-with-claude/prompt-caching#cache-limitations"""
    if (family == "opus" and version >= (4, 5)) or (family == "haiku" and version >= (4, 5)):
        return 4096
    return 2048 if family == "haiku" else 1024
