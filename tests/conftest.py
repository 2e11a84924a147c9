from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoAssertNumQueries

from core.openapi.views import document
from tests.described import clients_checked
from tests.recordings import EXPECTED, SHARED_DIR, missing_recordings

# The duration of an example depends on the machine's load, so no deadline is set.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# In CI the examples are the same every time; everywhere else each run draws new ones.
settings.load_profile("ci" if os.environ.get("CI") else "suite")


def pytest_report_header() -> str:
    missing, expected = missing_recordings(), sum(EXPECTED.values())
    return f"recordings: {expected - missing} of {expected} in {SHARED_DIR}" + (
        f", {missing} not found and not replayed" if missing else ""
    )


@pytest.fixture(scope="session", autouse=True)
def answers_checked() -> Iterator[None]:
    """Has every answer of the API to a test client be one that the OpenAPI document describes."""
    with clients_checked():
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(stores: None) -> None:
    """Has the stores run before pytest-django makes the test database: the first use of a database starts them.

    The OpenAPI document is made here too, before any test replaces parts of a view: the first answer needs it."""
    document()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    directory = tmp_path / "spool"
    directory.mkdir()
    return directory


@pytest.fixture
def last_uses_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the times of last use in memory: once a minute a call also writes them, which would change a count of
    queries."""
    monkeypatch.setattr("core.api.authentication.flush_last_uses_when_due", lambda: 0)


@pytest.fixture
def django_assert_num_queries(
    django_assert_num_queries: DjangoAssertNumQueries, last_uses_kept: None
) -> DjangoAssertNumQueries:
    return django_assert_num_queries


@pytest.fixture
def django_assert_max_num_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries, last_uses_kept: None
) -> DjangoAssertNumQueries:
    return django_assert_max_num_queries
