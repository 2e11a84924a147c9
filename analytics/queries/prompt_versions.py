"""How often was each version of a prompt config served, and when last?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class ServedVersion:
    """As far back as the project's requests are kept; `last_minute` is the UTC minute of the latest request."""

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
    """Versions that were never served are not there."""
    return client.query(_SQL, {"project": project_id, "config": config_id}, row=ServedVersion, name="prompt_versions")
