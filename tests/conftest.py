from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker
from rest_framework.test import APIClient
from whitenoise.middleware import WhiteNoiseMiddleware

from core.models import Project
from core.openapi.views import document
from tests.described import clients_checked
from tests.factories.core import client_of, make_project
from tests.kept import Keep, T, empty_tables, rows_kept
from tests.night import examples
from tests.recordings import EXPECTED, SHARED_DIR, missing_recordings

# The duration of an example depends on the machine's load, so no deadline is set.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# In CI the examples are the same every time; everywhere else each run draws new ones.
_PROFILE = settings.get_profile("ci" if os.environ.get("CI") else "suite")
settings.register_profile("here", _PROFILE, max_examples=examples(25, 200))
settings.load_profile("here")


def pytest_report_header() -> str:
    missing, expected = missing_recordings(), sum(EXPECTED.values())
    return f"recordings: {expected - missing} of {expected} in {SHARED_DIR}" + (
        f", {missing} not found and not replayed" if missing else ""
    )


@pytest.fixture(scope="session", autouse=True)
def answers_checked() -> Iterator[None]:
    """Every answer of the API to a test client must be one that the OpenAPI document describes."""
    with clients_checked():
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """All HTTP clients with default settings share one TLS context: reading the machine's certificates takes 25 ms of
    CPU, most of a client's cost, and nearly all speak plain HTTP."""
    with ExitStack() as stack:
        for name in ("httpx._transports.default", "httpx2._transports.default"):
            # A client that no collected test has imported is left as it is.
            if module := sys.modules.get(name):
                stack.enter_context(patch.object(module, "create_ssl_context", _shared(module.create_ssl_context)))
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files_found_once() -> Iterator[None]:
    """All test clients serve the static files that the first one found. Otherwise every client loads the middleware
    anew, and WhiteNoise looks for 200 files, which takes longer than most requests."""
    find = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, dict[str, Any]] = {}

    def found_once(self: WhiteNoiseMiddleware) -> None:
        if self.static_prefix not in found:
            find(self)
            found[self.static_prefix] = dict(self.files)
        self.files.update(found[self.static_prefix])

    with patch.object(WhiteNoiseMiddleware, "add_files_from_finders", found_once):
        yield


def _shared(create: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
    @cache
    def usual(trust_env: bool, *bundle: str | None) -> ssl.SSLContext:
        return create(trust_env=trust_env)

    def created(verify: object = True, cert: object = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return create(verify=verify, cert=cert, trust_env=trust_env)
        return usual(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    return created


@pytest.fixture(scope="session")
def django_db_modify_db_settings(stores: None) -> None:
    """Starts the stores before pytest-django makes the test database, whose first use needs them.

    Also makes the OpenAPI document, which the first answer needs, before any test replaces parts of a view.
    """
    document()


@pytest.fixture(scope="module")
def keep(
    clickhouse_engine: None,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Keep]:
    """Makes rows that a whole module reads. ClickHouse has no transactions, so its tests may not add requests, nor use
    `clickhouse`, which removes them."""
    with ExitStack() as stack:

        def kept(make: Callable[[Path], T]) -> T:
            spool = tmp_path_factory.mktemp("spool")
            return stack.enter_context(rows_kept(django_db_blocker, lambda: make(spool)))

        yield kept
    empty_tables()


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    directory = tmp_path / "spool"
    directory.mkdir()
    return directory


@pytest.fixture
def last_uses_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps last uses in memory: once a minute a call also writes them, which would change a count of queries."""
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
