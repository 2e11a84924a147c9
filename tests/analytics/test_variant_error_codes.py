"""Every error code that a request to a model may get counts in a rollout as its row says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.queries.variants import arm_totals
from analytics.queries.variants.by_record import recorded_minutes
from analytics.queries.variants.outcomes import ERROR_CODES, OTHER
from analytics.request_log.record import Outcome
from rollouts.evaluation.statistics.grid import LOG_RATIO
from tests.analytics.variant_records import PROJECT, ROLLOUT, START, record, rows, stored
from tests.documents.references import ROOT

# The limits of docs/limits.md: why a request that one of them refuses is unanswered; empty where it does not count.
LIMITS = {
    "requests_per_minute": "",
    "key_requests_per_minute": "",
    "user_requests_per_minute": "",
    "team_requests_per_minute": "",
    "monthly_budget_exceeded": "",
    "session_budget_exceeded": "budget",
    "key_monthly_budget_exceeded": "budget",
    "key_total_budget_exceeded": "budget",
    "user_monthly_budget_exceeded": "budget",
    "team_monthly_budget_exceeded": "budget",
    "team_total_budget_exceeded": "budget",
    "tokens_per_minute": "tokens_per_minute",
    "key_tokens_per_minute": "tokens_per_minute",
    "user_tokens_per_minute": "tokens_per_minute",
    "team_tokens_per_minute": "tokens_per_minute",
    "key_concurrent_requests": "concurrency",
    "user_concurrent_requests": "concurrency",
    "team_concurrent_requests": "concurrency",
}


def refusals_by_limits() -> set[str]:
    """Returns the codes in the tables of docs/limits.md."""
    page = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    refusals = re.findall(r"^\|.*\| (429 [^|]*) \|$", page, re.MULTILINE)
    return {code for refusal in refusals for code in re.findall(r", `(\w+)`", refusal)}


def documented() -> Iterator[tuple[int, str]]:
    """Yields the status and the code of every error of requests to models in docs/errors.md."""
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    section = page.partition("## Requests to models")[2].partition("\n## ")[0]
    for status, codes in re.findall(r"^\| (\d{3}) \| ([^|]+) \|", section, re.MULTILINE):
        for code in re.findall(r"`(\w+)`", codes):
            yield int(status), code


def test_codes__every_limit_and_every_documented_error__has_a_row() -> None:
    assert refusals_by_limits() == set(LIMITS)
    assert {code for _, code in documented()} | set(LIMITS) == set(ERROR_CODES)
    assert all(row.reason and row.reason != OTHER for row in ERROR_CODES.values())


@pytest.mark.usefixtures("clickhouse")
def test_limits__a_refusal_of_each__counts_where_a_version_has_a_part_in_it(spool: Path) -> None:
    stored(spool, *(record(1, **refused(429, code)) for code in LIMITS))

    found = arm_totals(PROJECT, ROLLOUT, START, START + timedelta(minutes=1))["target"]

    assert found.reasons == {"budget": 6, "tokens_per_minute": 4, "concurrency": 3}
    assert found.left_out == {code: 1 for code, reason in LIMITS.items() if not reason}
    assert (found.requests, found.compared, found.unanswered, found.counted) == (18, 13, 13, 0)


@pytest.mark.usefixtures("clickhouse")
@pytest.mark.parametrize("provider", ["", "openai"])
def test_documented_errors__a_request_of_each__counted_by_its_row(spool: Path, provider: str) -> None:
    """Each request is in a stage of its own."""
    codes = list(documented())
    stored(
        spool,
        *(
            record(1, rollout_stage=stage, provider=provider, **refused(status, code))
            for stage, (status, code) in enumerate(codes, start=1)
        ),
    )

    found = {row.stage: row for row in recorded_minutes(rows(), counted=(), log_ratio=LOG_RATIO)}

    texts = {"blocked_topic", "pii_detected", "prompt_injection"}
    for stage, (status, code) in enumerate(codes, start=1):
        row = found[stage]
        counts = LIMITS.get(code, code) != "" and (provider != "" or code not in texts)
        assert row.allocated == 1
        assert (row.requests, row.unanswered) == (counts, counts), code
        assert row.reasons == ({ERROR_CODES[code].reason: 1} if counts else {}), code
        assert row.left_out == ({} if counts else {code: 1}), code
        is_failure = status >= 500 or code in ("provider_rejected", "context_length_exceeded", "content_filter")
        assert (row.judged, row.errors) == (is_failure, is_failure), code


@pytest.mark.usefixtures("clickhouse")
def test_code_without_a_row__of_an_older_log__other(spool: Path) -> None:
    stored(spool, record(1, **refused(429, "a_code_of_yesterday")))
    [row] = recorded_minutes(rows(), counted=(), log_ratio=LOG_RATIO)
    assert (row.reasons, row.left_out) == ({OTHER: 1}, {})


def refused(status: int, code: str) -> dict[str, Any]:
    return {"outcome": Outcome.ERROR, "status_code": status, "error_code": code, "ttft_ms": 0}
