"""The limits of a fetch: its size, its time, and the addresses that it may go to."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """The limits of fetching. `max_bytes` bounds a file, `request_bytes` all files of a request together, `seconds` the
    fetch of all of them."""

    max_bytes: int
    request_bytes: int
    seconds: float
    allow_private: bool

    @classmethod
    def configured(cls) -> MediaLimits:
        return cls(
            settings.MEDIA_MAX_BYTES, settings.MEDIA_REQUEST_BYTES, settings.MEDIA_SECONDS, settings.ALLOW_PRIVATE_MEDIA
        )
