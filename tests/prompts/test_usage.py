from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from rest_framework.test import APIClient

from analytics.errors import AnalyticsUnavailableError
from config.prompt_usage import usage_by_version
from core.models import Project
from prompts.models import PromptVersion
from prompts.usage import PromptVersionUsage, read_usage_from, version_usage
from tests.factories.analytics import make_entry, store
from tests.factories.prompts import make_config
from tests.prompts.paths import config_path

MINUTE = datetime(2026, 11, 20, 13, 5, tzinfo=UTC)


@pytest.fixture
def source() -> Iterator[None]:
    yield
    read_usage_from(usage_by_version)


@pytest.mark.usefixtures("clickhouse")
def test_get_version__served__count_and_minute_of_the_latest_request(
    api: APIClient, project: Project, tmp_path: Path
) -> None:
    config = make_config(project, versions=3)
    own: dict[str, Any] = {"project_id": str(project.pk), "prompt_config_id": str(config.pk)}
    entries = [(1, 0), (1, 61), (2, 125), (2, 3)]
    store(
        tmp_path,
        *(make_entry(**own, prompt_version=n, ts=int((MINUTE.timestamp() + s) * 1e6)) for n, s in entries),
        make_entry(**{**own, "prompt_config_id": str(uuid4())}, prompt_version=1),
        make_entry(**{**own, "project_id": str(uuid4())}, prompt_version=1),
        make_entry(project_id=str(project.pk)),
    )
    usage = {}
    for version in PromptVersion.objects.filter(config=config):
        usage[version.number] = api.get(config_path(config.pk, "versions", version.pk)).json()["usage"]
    assert usage == {
        1: {"request_count": 2, "last_served_at": "2026-11-20T13:06:00Z"},
        2: {"request_count": 2, "last_served_at": "2026-11-20T13:07:00Z"},
        3: {"request_count": 0, "last_served_at": None},
    }


@pytest.mark.usefixtures("source")
def test_version_usage__request_log_away__unknown_and_no_failure() -> None:
    def away(project_id: UUID, config_id: UUID) -> Mapping[int, PromptVersionUsage]:
        raise AnalyticsUnavailableError("nobody answers")

    for source_function in (away, None):
        read_usage_from(source_function)
        assert version_usage(uuid4(), uuid4(), 1) is None
