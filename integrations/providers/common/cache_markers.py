"""The rules of automatic prompt-cache markers that all providers with such markers share.

A project asks for them (`prompt_cache_markers`); the client's own markers count alone. The vendors take four markers
in a request: the tools, the system text, the last turn, and the user's turn before it, which was the last one of the
previous request, so that its entry is found however many blocks have come since.
"""

from __future__ import annotations

import re

# A token has two bytes or more in nearly all texts, so a body with fewer is too short to be kept in a cache.
_BYTES_OF_A_TOKEN = 2
# The second half finds the letters of the names written as escapes, which no encoder does.
_OWN_MARKERS = re.compile(rb'"(?:cache_control|cachePoint|prompt_cache_breakpoint)"|\\u00(?:5[fF]|[67][0-9a-fA-F])')


def has_own_markers(body: bytes) -> bool:
    """Returns whether the client may have set markers anywhere in its JSON. A name of theirs that stands for something
    else counts too: a request without automatic markers is only dearer."""
    return _OWN_MARKERS.search(body) is not None


def is_long_enough(body: bytes, min_tokens: int) -> bool:
    """Returns whether a request can reach the least number of tokens that the vendor keeps for its model."""
    return len(body) >= min_tokens * _BYTES_OF_A_TOKEN


def claude_min_tokens(family: str, version: tuple[int, int]) -> int:
    """Returns the least tokens of a prefix that Claude's cache keeps
    (https://platform.claude.com/docs/en/build-with-claude/prompt-caching#cache-limitations)."""
    if (family == "opus" and version >= (4, 5)) or (family == "haiku" and version >= (4, 5)):
        return 4096
    if family == "haiku":
        return 2048
    return 1024
