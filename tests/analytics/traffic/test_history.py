"""The tests look at one history from many sides."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from analytics.clickhouse import client
from analytics.request_log.record import AttemptRecord
from analytics.shipper.texts import completion_text, prompt_text
from analytics.traffic.catalogue import MODELS
from analytics.traffic.generate import Plan, generate
from analytics.traffic.texts import OWN_TEXTS, WORDS, read_texts, word
from integrations.pricing import shipped
from integrations.pricing.cost import Price, cost_of
from integrations.pricing.lookup import find_price
from integrations.providers.usage import Usage
from tests.recordings import SHARED_DIR

END = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
REQUESTS = 6_000
SHARED_TEXTS = SHARED_DIR / "traffic" / "prompts.jsonl"


@pytest.fixture(scope="module")
def plan(clickhouse_engine: None) -> Iterator[Plan]:
    """The history is written once for all tests of this module, which only read."""
    made = Plan(uuid4(), REQUESTS, END, days=40, text_days=10, seed=5, api_keys=(11, 12))
    generate(made, read_texts(SHARED_TEXTS if SHARED_TEXTS.exists() else OWN_TEXTS), written=lambda _: None)
    yield made
    for (table,) in client.execute(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        " AND name != 'schema_migrations' AND total_rows > 0"
    ):
        client.execute(f"TRUNCATE TABLE `{table}`")


def _rows(sql: str, project: UUID) -> Sequence[tuple[Any, ...]]:
    return client.execute(sql, {"project": project})


def test_requests_are_such_as_the_gateway_writes(plan: Plan) -> None:
    sql = """
        SELECT
            ts, request_id, outcome, status_code, api_key_id, provider, model, requested_model, error_type, error_code,
            is_stream, retry_count, fallback_used, prompt_tokens, completion_tokens, cache_read_tokens,
            cache_write_tokens, reasoning_tokens, cost_known, cost_input_usd, cost_cache_read_usd,
            cost_cache_write_usd, cost_output_usd, cost_usd, latency_ms, ttft_ms, attempts, error_message
        FROM requests WHERE project_id = {project:UUID}
    """
    rows = client.query(sql, {"project": plan.project}, row=_Request, name="test.traffic")
    assert len(rows) == REQUESTS
    for row in rows:
        row.check(plan)
    outcomes = Counter(row.outcome for row in rows)
    assert 0.02 < 1 - outcomes["success"] / REQUESTS < 0.08
    assert {"provider_rejected", "provider_unavailable", "requests_per_minute"} < {row.error_code for row in rows}
    assert {row.model for row in rows} == {"", *(model.name for model in MODELS)}
    assert sum(row.retry_count for row in rows)
    assert any(row.fallback_used and row.outcome == "success" for row in rows)
    assert sum(row.cache_read_tokens > 0 for row in rows) > REQUESTS / 10
    assert any(row.cache_write_tokens for row in rows)
    assert any(row.reasoning_tokens for row in rows)
    assert 0.5 < sum(row.is_stream for row in rows) / REQUESTS < 0.9


_PRICES = {
    (entry.provider, entry.model): Price(entry.input, entry.output, entry.cache_read, entry.cache_write)
    for _, entry in reversed(list(shipped.entries()))
}


@dataclass(frozen=True)
class _Request:
    ts: datetime
    request_id: UUID
    outcome: str
    status_code: int
    api_key_id: int
    provider: str
    model: str
    requested_model: str
    error_type: str
    error_code: str
    is_stream: bool
    retry_count: int
    fallback_used: bool
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_known: bool
    cost_input_usd: Decimal
    cost_cache_read_usd: Decimal
    cost_cache_write_usd: Decimal
    cost_output_usd: Decimal
    cost_usd: Decimal
    latency_ms: int
    ttft_ms: int
    attempts: str
    error_message: str

    def check(self, plan: Plan) -> None:
        period = plan.period
        assert period.since <= self.ts <= self.ts + timedelta(milliseconds=self.latency_ms) <= period.until
        assert (self.request_id.version, self.request_id.variant) == (7, "specified in RFC 4122")
        assert self.request_id.int >> 80 == int(self.ts.timestamp() * 1_000_000) // 1000
        assert self.api_key_id in plan.api_keys
        assert bool(self.provider) == bool(self.model) == self.cost_known
        assert bool(self.error_code) == bool(self.error_type) == bool(self.error_message)
        assert (self.outcome in ("error", "interrupted")) == bool(self.error_code)
        assert (self.status_code == 200) == (self.outcome == "success")
        assert self.ttft_ms <= self.latency_ms
        assert (self.model != self.requested_model) == (self.fallback_used or not self.model)
        self._check_cost()
        self._check_attempts()

    def _check_cost(self) -> None:
        usage = Usage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )
        assert self.cache_read_tokens + self.cache_write_tokens <= self.prompt_tokens
        assert self.reasoning_tokens <= self.completion_tokens
        assert (self.outcome == "success") <= (usage.prompt_tokens > 0 and usage.completion_tokens > 0)
        if not self.cost_known:
            assert self.cost_usd == usage.total_tokens == 0
            return
        price = find_price(_PRICES, self.provider, self.model)
        assert price is not None
        cost = cost_of(usage, price)
        assert cost.total == self.cost_usd
        assert (cost.input, cost.output) == (self.cost_input_usd, self.cost_output_usd)
        assert (cost.cache_read, cost.cache_write) == (self.cost_cache_read_usd, self.cost_cache_write_usd)

    def _check_attempts(self) -> None:
        if not self.provider:
            assert self.attempts == ""
            return
        attempts = msgspec.json.decode(self.attempts, type=list[AttemptRecord])
        assert self.attempts == msgspec.json.encode(attempts).decode()
        last = attempts[-1]
        assert (last.provider, last.model) == (self.provider, self.model)
        assert (last.error == "") == (self.outcome == "success")
        assert len(attempts) == 1 + self.retry_count + self.fallback_used
        offsets = [one.offset_us for one in attempts]
        assert offsets[0] > 0 and offsets == sorted(offsets)
        assert all(one.offset_us <= 1000 * (self.latency_ms - one.latency_ms) for one in attempts[1:])
        assert sum(one.latency_ms for one in attempts) <= self.latency_ms + len(attempts)
        if self.outcome == "success":
            assert (last.prompt_tokens, last.completion_tokens) == (self.prompt_tokens, self.completion_tokens)
            assert Decimal(last.cost_usd) == self.cost_usd


@dataclass(frozen=True)
class _Payload:
    ts: datetime
    prompt: str
    completion: str
    request: str
    response: str
    model: str
    is_stream: bool
    requested_model: str
    prompt_preview: str
    outcome: str


def test_texts_are_those_of_the_bodies(plan: Plan) -> None:
    sql = """
        SELECT p.ts AS ts, p.prompt AS prompt, p.completion AS completion, p.request AS request, p.response AS response,
            r.model AS model, r.is_stream AS is_stream, r.requested_model AS requested_model,
            r.prompt_preview AS prompt_preview, r.outcome AS outcome
        FROM payloads AS p INNER JOIN requests AS r ON r.request_id = p.request_id
        WHERE p.project_id = {project:UUID} AND r.project_id = {project:UUID}
    """
    rows = client.query(sql, {"project": plan.project}, row=_Payload, name="test.traffic")
    assert len(rows) > 200
    assert len({row.prompt for row in rows}) > 0.99 * len(rows)
    own = Counter(found for row in rows for found in re.search(r"\[(\w+) (\w+)(?:, \w{8})?\] ", row.prompt).groups())  # type: ignore[union-attr]
    assert set(own) <= {word(rank) for rank in range(WORDS)}
    assert own.most_common(1)[0][0] == word(0)
    for row in rows:
        assert row.ts >= plan.period.texts_from - timedelta(hours=1)
        body = json.loads(row.request)
        assert body["model"] == row.requested_model
        assert body.get("stream", False) == row.is_stream
        assert prompt_text(row.request.encode()).decode() == row.prompt
        assert row.prompt[:200] == row.prompt_preview
        assert completion_text(row.response.encode()).decode() == row.completion
        assert bool(row.completion) == (row.outcome == "success") or row.outcome == "cancelled"
        if row.response:
            assert json.loads(row.response)["model"] == row.model


def test_sums_of_all_tables_are_those_of_the_requests(plan: Plan) -> None:
    sums = "sum(requests), sum(errors), sum(cancelled), sum(prompt_tokens), sum(completion_tokens), sum(cost_usd)"
    raw = _rows(
        "SELECT count(), countIf(outcome IN ('error', 'interrupted')), countIf(outcome = 'cancelled'),"
        " sum(prompt_tokens), sum(completion_tokens), sum(cost_usd) FROM requests WHERE project_id = {project:UUID}",
        plan.project,
    )
    for table in ("requests_minute", "requests_hourly", "requests_daily", "users_daily"):
        sql = f"SELECT {sums} FROM {table} WHERE project_id = {{project:UUID}}"  # noqa: S608 - names of this test
        assert _rows(sql, plan.project) == raw, table


def test_sessions_have_a_heavy_tail_and_users_are_few_who_ask_much(plan: Plan) -> None:
    sql = """
        SELECT session_id, count(), uniqExact(user_id), max(ts) - min(ts) FROM requests
        WHERE project_id = {project:UUID} AND session_id != '' GROUP BY session_id ORDER BY count() DESC
    """
    sessions = _rows(sql, plan.project)
    assert sessions[0][0].startswith("marathon-")
    assert sessions[0][1] == plan.marathon == REQUESTS // 10
    assert timedelta(seconds=int(sessions[0][3])) > timedelta(days=15)
    counts = [count for _, count, _, _ in sessions[1:]]
    assert {users for _, _, users, _ in sessions} == {1}
    assert max(counts) > 10 * sum(counts) / len(counts)
    assert sorted(counts)[len(counts) // 2] < sum(counts) / len(counts)
    busiest = _rows(
        "SELECT count() FROM requests WHERE project_id = {project:UUID} AND user_id != '' GROUP BY user_id"
        " ORDER BY count() DESC",
        plan.project,
    )
    assert busiest[0][0] > 5 * busiest[len(busiest) // 2][0]


def test_sessions_have_spans_and_some_have_logs_that_find_their_session(plan: Plan) -> None:
    sql = """
        SELECT r.session_id, count(), countIf(r.spans_derived), any(l.logs)
        FROM requests AS r
        INNER JOIN (
            SELECT SessionIds[1] AS id, count() AS logs FROM otel_logs WHERE ProjectId = {project:UUID} GROUP BY id
        ) AS l ON l.id = r.session_id
        WHERE r.project_id = {project:UUID} AND r.ts >= {since:DateTime64(6, 'UTC')} GROUP BY r.session_id
    """
    since = plan.end - timedelta(days=25)
    found = client.execute(sql, {"project": plan.project, "since": since})
    assert len(found) > 20
    assert any(session.startswith("marathon-") for session, *_ in found)
    whole = [row for row in found if not row[0].startswith("marathon-")]
    assert all(logs >= requests == derived for _, requests, derived, logs in whole)
