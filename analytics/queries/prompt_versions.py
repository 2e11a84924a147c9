"""Counts how often each version of a prompt config was served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class ServedVersion:
    """A version and its stored requests; `last_minute` is the UTC minute of the latest request."""

    version: int
    requests: int
    last_minute: datetime


_SQL = """
SELECT m.prompt_version AS version, sum(m.requests) AS requests, max(m.minute) AS last_minute
FROM requests_minute AS m
WHERE m.project_id = {project:UUID} AND m.prompt_config_id = {config:UUID} AND m.prompt_version > 0
GROUP BY version ORDER BY version
"""


def served_versions(project_id: UUID, config_id: UUID) -> Sequence[ServedVersion]:
    """Returns the versions of a prompt config that were served at least once."""
    return client.query(_SQL, {"project": project_id, "config": config_id}, row=ServedVersion, name="prompt_versions")
