"""How often versions were served. The request log knows; it lies in an app that this one does not know, so that
`config`, which knows both, says here whom to ask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.errors import ServiceUnavailableError

logger = logging.getLogger("prompts")


@dataclass(frozen=True, slots=True)
class VersionUsage:
    """As far back as requests are kept; `last_served_at` is exact to the minute, None when there was no request."""

    request_count: int = 0
    last_served_at: datetime | None = None


# (project, config) → usage by version number; versions that were never served may be missing.
UsageSource = Callable[[UUID, UUID], Mapping[int, VersionUsage]]

_source: UsageSource | None = None


def read_usage_from(source: UsageSource | None) -> None:
    global _source
    _source = source


def version_usage(project_id: UUID, config_id: UUID, number: int) -> VersionUsage | None:
    """None while the request log does not answer: prompts are managed without it too."""
    if _source is None:
        return None
    try:
        return _source(project_id, config_id).get(number, VersionUsage())
    except ServiceUnavailableError as error:
        logger.warning("usage.unavailable config_id=%s error=%s", config_id, type(error).__name__)
        return None
