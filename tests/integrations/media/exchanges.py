"""The limits, the picture and the check of failures for tests that fetch files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from integrations.errors import MediaError
from integrations.media import MediaFetcher, MediaLimits
from tests.waiting import TIMEOUT_SECONDS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
LIMITS = MediaLimits(max_bytes=100_000, request_bytes=250_000, seconds=TIMEOUT_SECONDS, allow_private=True)
STRICT = replace(LIMITS, allow_private=False)
NewFetcher = Callable[..., MediaFetcher]


async def problem_of(fetcher: MediaFetcher, *urls: str) -> str:
    with pytest.raises(MediaError) as caught:
        await fetcher.fetch(urls)
    assert caught.value.status == 400
    assert caught.value.code == "invalid_value"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value.message
