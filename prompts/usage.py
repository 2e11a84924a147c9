"""The usage of versions: the number of requests that each served, and the time of the latest.

The request log is in an app that this one does not import, so `config`, which imports both, registers the function that
queries it.
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
class PromptVersionUsage:
    """Counts the requests that are kept; `last_served_at` is exact to the minute, or None."""

    request_count: int
    last_served_at: datetime | None


# The function maps (project, config) to usage by version number; versions that were never served may be missing.
UsageSource = Callable[[UUID, UUID], Mapping[int, PromptVersionUsage]]

_source: UsageSource | None = None


def read_usage_from(source: UsageSource | None) -> None:
    global _source
    _source = source


def version_usage(project_id: UUID, config_id: UUID, number: int) -> PromptVersionUsage | None:
    if _source is None:
        return None
    try:
        return _source(project_id, config_id).get(number, PromptVersionUsage(0, None))
    except ServiceUnavailableError as error:
        logger.warning("usage.unavailable config_id=%s error=%s", config_id, type(error).__name__)
        return None
