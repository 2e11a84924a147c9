"""Answers the prompts app's questions about usage from the request log; neither of the two apps imports the other."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from prompts.usage import VersionUsage


def usage_by_version(project_id: UUID, config_id: UUID) -> Mapping[int, VersionUsage]:
    from analytics.queries.prompt_versions import served_versions  # The driver of ClickHouse is slow to import.

    return {
        served.version: VersionUsage(request_count=served.requests, last_served_at=served.last_minute)
        for served in served_versions(project_id, config_id)
    }
