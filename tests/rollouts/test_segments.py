"""Segments of a rollout, from the records in ClickHouse to the warning."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from analytics.errors import AnalyticsLimitError
from analytics.queries.variants import segments as query
from analytics.queries.variants.by_record import Recorded
from analytics.request_log.record import Outcome, SpoolEntry
from rollouts.allocation import AllocationType
from rollouts.models import Rollout
from rollouts.states import Stage
from rollouts.verdicts import segments
from tests.factories.analytics import store_as_of_then
from tests.factories.core import make_key
from tests.factories.rollouts import make_rollout
from tests.rollouts.conftest import PATH, Api
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import begun, this_minute
from tests.rollouts.test_recorded import came, looked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse", "still_clock")]

FAILED: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "provider_unavailable"}
STAGES = [Stage(50, 600, 0), Stage(60, 600, 0), Stage(100, 0, 0)]


def a_rollout(allocation: AllocationType = AllocationType.RANDOM) -> Rollout:
    return begun(make_rollout(started=True, stages=STAGES, allocation_type=allocation), 10)


def found(rollout: Rollout, *, weights_before: list[int] | None = None) -> dict[tuple[str, str], list[int]]:
    """Returns by dimension and value the requests, the unanswered, answered, broken and empty ones of both arms."""
    start, end = rollout.started_at, this_minute()
    assert start is not None
    rows = Recorded(rollout.project_id, rollout.pk, start, start, end)
    sums: dict[tuple[str, str], list[int]] = {}
    for row in query.segment_minutes(rows, weights_before=weights_before):
        numbers = [value for name, value in asdict(row).items() if name.startswith(("target_", "baseline_"))]
        known = sums.setdefault((row.dimension, row.value), [0] * 10)
        sums[row.dimension, row.value] = [one + other for one, other in zip(known, numbers, strict=True)]
    return sums


def test_query__random__counts_every_dimension_by_hand(spool: Path) -> None:
    rollout = a_rollout()
    german: dict[str, Any] = {"language": "de", "client_tokens": 256, "requested_model": "gpt-4o", "api_key_id": 7}
    french: dict[str, Any] = {
        "language": "fr",
        "client_tokens": 257,
        "requested_model": "auto",
        "attributes": {"metadata.team": "a"},
    }
    entries = [
        came(rollout, 5, **german),
        came(rollout, 5, **german, **FAILED),
        came(rollout, 4, variant="baseline", **german),
        came(rollout, 4, **french, contract_violation=True),
        came(rollout, 4, variant="baseline", empty_answer=True, **french),
        # None of these counts: a hit, a question that a cache knew, a limit, a forced arm.
        came(rollout, 4, **french, cache_status="hit"),
        came(rollout, 4, **french, question_cached=True),
        came(rollout, 4, **french, outcome=Outcome.ERROR, status_code=429, error_code="requests_per_minute"),
        came(rollout, 4, **french, alloc_unit=0),
        # Its segments are unknown but for its length.
        came(rollout, 4, client_tokens=70_000, requested_model="", api_key_id=0, attributes={"client_request_id": "x"}),
    ]
    store_as_of_then(spool, *entries)

    assert found(rollout) == {
        ("all", "all"): [4, 1, 3, 1, 0, 2, 0, 2, 0, 1],
        ("language", "de"): [2, 1, 1, 0, 0, 1, 0, 1, 0, 0],
        ("length", "1-256"): [2, 1, 1, 0, 0, 1, 0, 1, 0, 0],
        ("model", "gpt-4o"): [2, 1, 1, 0, 0, 1, 0, 1, 0, 0],
        ("key", "7"): [2, 1, 1, 0, 0, 1, 0, 1, 0, 0],
        ("language", "fr"): [1, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        ("length", "257-1024"): [1, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        ("model", "auto"): [1, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        ("metadata.team", "a"): [1, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        ("length", "65537-"): [1, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    }


def test_query__sticky__counts_each_user_once_a_stage_unless_in_the_target_before(spool: Path) -> None:
    rollout = a_rollout(AllocationType.USER_STICKY)
    german: dict[str, Any] = {"language": "de", "client_tokens": 0, "requested_model": "", "api_key_id": 0}
    entries = [
        came(rollout, 6, alloc_unit=1, **german, **FAILED),
        came(rollout, 5, alloc_unit=1, **german),
        came(rollout, 6, alloc_unit=2, **german),
        came(rollout, 5, alloc_unit=2, **german, **FAILED),
        came(rollout, 5, alloc_unit=9_000, variant="baseline", **german),
        # In stage 2 users 1 and 2 were in the target before; 5,500 is new to it.
        came(rollout, 3, alloc_unit=1, stage=2, **german, **FAILED),
        came(rollout, 3, alloc_unit=5_500, stage=2, **german),
        came(rollout, 2, alloc_unit=9_000, variant="baseline", stage=2, **german, **FAILED),
    ]
    store_as_of_then(spool, *entries)

    expected = [3, 1, 2, 0, 0, 2, 1, 1, 0, 0]
    assert found(rollout, weights_before=[0, 50, 60]) == {("all", "all"): expected, ("language", "de"): expected}


def _minute(rollout: Rollout, ago: float, key_id: int, *, stage: int = 1, breaks: bool = True) -> list[SpoolEntry]:
    """Returns a minute in which the target answers nothing in Japanese, and everything else as the baseline does."""
    common: dict[str, Any] = {"client_tokens": 90, "requested_model": "gpt-4o"}
    japanese: dict[str, Any] = {"language": "ja", "api_key_id": key_id, **common}
    english: dict[str, Any] = {"language": "en", "api_key_id": 99, **common}
    return [
        *[came(rollout, ago, stage=stage, **japanese, **(FAILED if breaks else {})) for _ in range(16)],
        *[came(rollout, ago, stage=stage, variant="baseline", **japanese) for _ in range(16)],
        *[came(rollout, ago, stage=stage, variant=arm, **english) for arm in ("target", "baseline") for _ in range(20)],
    ]


def test_evaluation__one_language_fails__is_named_once_and_decides_nothing(
    api: Api, spool: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rollout = begun(make_rollout(api.config, started=True, stages=STAGES), 10)
    rollout.policy = {"unanswered": "hold", "error_rate": "ignore"}
    rollout.save()
    key_id = make_key(rollout.project, name="Tokyo")[0].pk
    before = [entry for ago in (8.5, 7.5, 6.5) for entry in _minute(rollout, ago, key_id)]
    store_as_of_then(spool, *before, came(rollout, 4.5, stage=2), came(rollout, 4.5, stage=2, variant="baseline"))

    with caplog.at_level(logging.WARNING, "rollouts"):
        first = looked(rollout, monkeypatch, ago=4)
        later = looked(rollout, monkeypatch, ago=3)

    named = [record.getMessage() for record in caplog.records if "segment_named" in record.getMessage()]
    assert [message.rpartition("dimension=")[2] for message in named] == ["key", "language"]
    assert first.verdict["segments"] == later.verdict["segments"] == ["key Tokyo", "language Japanese"]
    assert "The target is worse for key Tokyo, language Japanese: look" in first.verdict["explanation"]
    assert first.verdict["decision"] == "wait"
    rollout.refresh_from_db()
    assert replayed_figures(rollout, later.verdict) == later.verdict
    shown = api.client.get(f"{PATH}/{rollout.pk}/metrics").json()["segments"]
    assert [(one["dimension"], one["label"], one["named"]) for one in shown] == [
        ("key", "Tokyo", True),
        ("language", "Japanese", True),
        ("length", "1 to 256 tokens", False),
        ("model", "gpt-4o", False),
        ("key", "99 (deleted)", False),
        ("language", "English", False),
    ]
    assert shown[1]["target"] == {
        "request_count": 32,
        "unanswered_count": 32,
        "unanswered_rate": 1.0,
        "contract_violation_count": 0,
        "empty_count": 0,
    }
    assert shown[1]["baseline"]["unanswered_count"] == 0
    assert shown[0]["evidence"] == shown[1]["evidence"] > shown[1]["evidence_threshold"]


def test_evaluation__segments_too_much_for_the_store__decides_without_them(
    spool: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AnalyticsLimitError("too much")

    rollout = a_rollout()
    store_as_of_then(spool, came(rollout, 8.5), came(rollout, 8.5, variant="baseline"))
    monkeypatch.setattr(segments, "segment_minutes", refuse)

    evaluation = looked(rollout, monkeypatch, ago=4)

    assert evaluation.verdict["minutes"] == 1
    assert f"rollout.segments_skipped rollout_id={rollout.pk} minutes=1" in caplog.text


def test_evaluation__harmless_target__names_nothing(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = a_rollout()
    before = [entry for ago in (8.5, 7.5, 6.5) for entry in _minute(rollout, ago, 7, breaks=False)]
    store_as_of_then(spool, *before, came(rollout, 4.5, stage=2))

    verdict = looked(rollout, monkeypatch, ago=4).verdict

    assert "segments" not in verdict
    assert "worse for" not in verdict["explanation"]
