"""Answers the prompts app's questions about usage from the request log; neither app imports the other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from uuid import UUID

from prompts.usage import PromptVersionUsage


def usage_by_version(project_id: UUID, config_id: UUID) -> Mapping[int, PromptVersionUsage]:
    from analytics.queries.groups import served_versions  # The driver of ClickHouse is slow to import.

    return {
        served.version: PromptVersionUsage(served.requests, served.last_minute.replace(tzinfo=UTC))
        for served in served_versions(project_id, config_id)
    }
