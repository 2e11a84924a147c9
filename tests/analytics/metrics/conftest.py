from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import BATCH, AttemptRecord, Outcome, RequestRecord, SpoolEntry
from tests.analytics.metrics.reference import microseconds
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.kept import Keep

Api = tuple[APIClient, str]
OPERATIONS = ("chat", "chat", "messages", "embeddings")
PROMPTS: list[dict[str, Any]] = [
    {},
    # A request whose config was skipped has no version.
    {"prompt_config_id": "0b000000-0000-4000-8000-000000000001"},
    {"prompt_config_id": "0b000000-0000-4000-8000-000000000001", "prompt_version": 1},
    {"prompt_config_id": "0b000000-0000-4000-8000-000000000001", "prompt_version": 2},
    {"prompt_config_id": "0b000000-0000-4000-8000-000000000002", "prompt_version": 1},
]
NOW = datetime(2026, 11, 20, 13, 37, 11, 123456, tzinfo=UTC)


@dataclass(frozen=True)
class KeptRecords:
    """The records of a module, and a client of their project."""

    api: Api
    records: list[RequestRecord]


@pytest.fixture
def api() -> Api:
    """A client of a project of its own, and the project's id."""
    return make_api()


def make_api() -> Api:
    project = make_project()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {make_key(project)[1]}", HTTP_X_PROJECT_ID=str(project.pk))
    return client, str(project.pk)


@pytest.fixture
def get(api: Api) -> Callable[..., Any]:
    """Returns a function that gets the JSON of a metrics endpoint, which must answer 200: `get("users", limit=5)`."""

    def ask(path: str, **query: Any) -> Any:
        values = {name: v.isoformat() if isinstance(v, datetime) else v for name, v in query.items()}
        answer = api[0].get(f"/api/llm/metrics/{path}", values)
        assert answer.status_code == 200, answer.json()
        return answer.json()

    return ask


@pytest.fixture
def records(spool: Path, api: Api) -> list[RequestRecord]:
    """Nine hundred requests of the 50 days before NOW, most of the last three days, in several inserts, and one of
    another project."""
    return make_records(spool, api[1])


@pytest.fixture(scope="module")
def kept_records(keep: Keep) -> KeptRecords:
    """What `api` and `records` are, made once for a module whose tests store nothing."""

    def make(spool: Path) -> KeptRecords:
        api = make_api()
        return KeptRecords(api, make_records(spool, api[1]))

    return keep(make)


def make_records(spool: Path, project: str) -> list[RequestRecord]:
    chance = random.Random(11)
    entries = [make_request(chance, project) for _ in range(900)]
    for first in range(0, len(entries), 250):
        store(spool, *entries[first : first + 250])
    store(spool, *(make_request(chance, str(make_project().pk)) for _ in range(60)))
    return [entry.record for entry in entries]


def make_request(chance: random.Random, project: str) -> SpoolEntry:
    age = timedelta(seconds=chance.choice([7200, 3 * 86400, 3 * 86400, 50 * 86400]) * chance.random())
    outcome = chance.choice([Outcome.SUCCESS] * 6 + [Outcome.ERROR, Outcome.CANCELLED, Outcome.INTERRUPTED])
    provider = chance.choice(["openai", "anthropic", ""])
    streamed, known = chance.random() < 0.4, chance.random() < 0.8
    source = chance.choice(["gateway", "gateway", "playground", "judge", BATCH])
    failed = outcome in {Outcome.ERROR, Outcome.INTERRUPTED}
    return make_entry(
        project_id=project,
        ts=microseconds(NOW - age),
        outcome=outcome,
        status_code=chance.choice([429, 500, 502]) if failed else 200,
        error_type=chance.choice(["api_error", "timeout_error"]) if failed else "",
        error_code=chance.choice(["timeout", "upstream_error", ""]) if failed else "",
        operation=chance.choice(OPERATIONS),
        source=source,
        # No key that a test makes has one of these ids.
        api_key_id=chance.choice([0, 2**40, 2**40 + 1, 2**40 + 2]),
        provider=provider,
        model=chance.choice(["a", "b", "c", "d", "e", "f", "g"]) if provider else "",
        session_id=chance.choice(["", *(f"s{index}" for index in range(60))]),
        user_id=chance.choice(["", *(f"u{index}" for index in range(25)), "ü", "a'b\\", "%_", "tab\tline\nend"]),
        **(chance.choice(PROMPTS)),
        prompt_tokens=chance.randrange(4000),
        completion_tokens=chance.randrange(900),
        cache_read_tokens=chance.randrange(100),
        cache_write_tokens=chance.randrange(100),
        latency_ms=0 if source == BATCH else chance.randrange(60_000),
        ttft_ms=chance.randrange(1, 4000) if streamed and source != BATCH else 0,
        cost_known=known,
        cost_usd=f"{Decimal(chance.randrange(10**9)) / 10**10:.10f}" if known else "",
        retention_days=chance.choice([4000, 4000, 900]),
        attempts=_attempts(chance, provider),
    )


def _attempts(chance: random.Random, provider: str) -> tuple[AttemptRecord, ...]:
    """Returns up to two calls; the second is at one of two deployments of OpenAI, or at one without a name."""
    name = chance.choice(["openai-eu", "openai-us", ""]) if provider == "openai" else ""
    last = AttemptRecord(provider, "m", deployment=name)
    first = AttemptRecord("openai", "m", error="timeout", deployment="openai-eu")
    return chance.choice([(last,), (first, last)]) if provider else ()
