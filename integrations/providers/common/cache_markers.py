"""The rules of automatic prompt-cache markers that all vendors share.

A project asks for them (`prompt_cache_markers`); if the client sets markers, only its own apply. Vendors take four
markers: the tools, the system text, the last turn, and the user's turn before it. That turn was the last one of the
previous request, so its entry is found however many blocks follow.
"""

from __future__ import annotations

import re

# A token has two bytes or more in nearly all texts, so a body with fewer is too short to be kept in a cache.
_BYTES_OF_A_TOKEN = 2
# The second half finds the letters of the names written as escapes, which no encoder does.
_OWN_MARKERS = re.compile(rb'"(?:cache_control|cachePoint|prompt_cache_breakpoint)"|\\u00(?:5[fF]|[67][0-9a-fA-F])')


def has_own_markers(body: bytes) -> bool:
    """Whether the JSON may hold markers of the client. False positives are possible: they only make the request
    dearer.
    """
    return _OWN_MARKERS.search(body) is not None


def is_long_enough(body: bytes, min_tokens: int) -> bool:
    return len(body) >= min_tokens * _BYTES_OF_A_TOKEN
