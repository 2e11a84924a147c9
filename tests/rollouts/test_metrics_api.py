"""The comparison over HTTP from records in ClickHouse, and the whole evaluation from records to a verdict."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from django.conf import settings

from analytics.errors import AnalyticsUnavailableError
from analytics.request_log.record import Outcome, SpoolEntry
from rollouts.allocation import AllocationType, UnitKind, Variant, unit_number, variant_at
from rollouts.comparison import metrics
from rollouts.evaluation import Metric
from rollouts.models import Mode, Rollout, RolloutEvaluation, RolloutMinute, RolloutTransition
from rollouts.open_requests.lists import OpenRequest, encode, key, workers_key
from rollouts.states import Stage
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.analytics import make_entry, store_as_of_then
from tests.factories.rollouts import make_rollout
from tests.rollouts.conftest import PATH, Api
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import begun, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse", "still_clock")]


def running(api: Api, **fields: Any) -> Rollout:
    stages = [Stage(50, 0, 5), Stage(100, 0, 0)]
    return begun(make_rollout(api.config, started=True, **{"stages": stages, **fields}), 10)


def entries(rollout: Rollout, count: int, failing: int = 0, users: int = 0, **values: Any) -> list[SpoolEntry]:
    """Records so many requests in the fifth minute before this one, allocated as the gateway does; the first
    `failing` of the target's fail."""
    made, failed = [], 0
    at = this_minute() - timedelta(minutes=5)
    for number in range(count):
        kind, unit = (UnitKind.USER, f"u{number % users}") if users else (UnitKind.REQUEST, f"r{number}")
        hashed = unit_number(str(rollout.pk), kind, unit)
        variant = variant_at(hashed, 50)
        fails = variant is Variant.TARGET and failed < failing
        failed += fails
        outcome = {"outcome": Outcome.ERROR, "status_code": 503} if fails else {}
        fields: dict[str, Any] = {
            "ts": int((at + timedelta(milliseconds=number * 50)).timestamp() * 1_000_000),
            "project_id": str(rollout.project_id),
            "prompt_config_id": str(rollout.config_id),
            "prompt_version": 2 if variant is Variant.TARGET else 1,
            "rollout_id": str(rollout.pk),
            "rollout_stage": 1,
            "variant": variant.value,
            "alloc_unit": hashed,
            "user_id": unit if users else "",
            "latency_ms": 200 if variant is Variant.BASELINE else 300,
            "cost_usd": "0.0010000000",
        }
        made.append(make_entry(**{**fields, **outcome, **values}))
    return made


def metrics_of(api: Api, rollout: Rollout) -> Any:
    response = api.client.get(f"{PATH}/{rollout.pk}/metrics")
    assert response.status_code == 200, response.content
    return response.json()


def test_metrics__pending__zeros_and_inconclusive(api: Api) -> None:
    body = metrics_of(api, make_rollout(api.config))
    assert (body["overall_status"], body["decision"], body["evaluated_at"]) == ("inconclusive", "wait", None)
    assert body["explanation"]
    for arm, number in (("target", 2), ("baseline", 1)):
        assert body[arm] == {
            "version_id": getattr(api, arm),
            "version_number": number,
            **dict.fromkeys(["request_count", "error_count", "unpriced_request_count", "fallback_request_count"], 0),
            **dict.fromkeys(["cache_hit_count", "left_out_count", "answered_count", "unanswered_count"], 0),
            **dict.fromkeys(["contract_violation_count", "truncated_count", "served_by_fallback_count"], 0),
            **dict.fromkeys(["empty_count", "stopped_count", "uncompared_count"], 0),
            "left_out": {},
            **dict.fromkeys(
                ["error_rate", "average_latency_ms", "p95_latency_ms", "total_cost_usd", "average_cost_usd"], 0.0
            ),
            "unanswered_rate": 0.0,
            "unanswered_reasons": {},
        }
    assert set(body["metrics"]) == set(Metric)
    assert {metric["status"] for metric in body["metrics"].values()} == {"inconclusive"}
    assert not any(metric["decides"] for metric in body["metrics"].values())
    assert (body["forecast"], body["open_requests"]) == (None, {"target": 0, "baseline": 0})
    assert body["earlier_rollbacks"]["count"] == 0


def test_metrics__before_an_evaluation__totals_of_now(api: Api, spool: Path) -> None:
    rollout = running(api)
    made = entries(rollout, 200, failing=20)
    store_as_of_then(spool, *made)
    body = metrics_of(api, rollout)
    for arm in ("target", "baseline"):
        rows = [entry.record for entry in made if entry.record.variant == arm]
        errors = 20 if arm == "target" else 0
        latency = 300 if arm == "target" else 200
        assert body[arm]["request_count"] == len(rows)
        assert (body[arm]["error_count"], body[arm]["error_rate"]) == (errors, errors / len(rows))
        assert (body[arm]["average_latency_ms"], body[arm]["p95_latency_ms"]) == (latency, latency)
        assert body[arm]["total_cost_usd"] == pytest.approx(0.001 * len(rows))
        assert body[arm]["average_cost_usd"] == pytest.approx(0.001)
    assert body["evaluated_through"] is None


def test_failing_target__evaluated_from_records__rolled_back_and_explained(api: Api, spool: Path) -> None:
    rollout = running(api, mode=Mode.AUTO)
    store_as_of_then(spool, *entries(rollout, 300, failing=75))

    judgement = evaluate_rollout(rollout.pk)

    assert judgement is not None
    assert judgement.moved == "roll_back"
    body = metrics_of(api, rollout)
    assert (body["rollout_status"], body["overall_status"], body["decision"]) == (
        "rolled_back",
        "failing",
        "roll_back",
    )
    errors = body["metrics"]["error_rate"]
    assert (errors["status"], errors["action"], errors["judged"]) == ("failing", "roll_back", True)
    assert 0 < errors["interval"]["low"] < errors["difference"] < errors["interval"]["high"]
    assert errors["interval"]["confidence"] == 0.95
    assert errors["difference"] == pytest.approx(body["target"]["error_rate"], abs=0.01)
    assert errors["p_value"] < 0.025
    assert errors["evidence"] >= errors["evidence_threshold"] == pytest.approx(math.log(1 / 0.017))
    assert {name for name, metric in body["metrics"].items() if metric["decides"]} == {"unanswered", "error_rate"}
    values = errors["explanation"].removeprefix("Worse: ").removesuffix(", certain enough to roll back.")
    assert f"Errors: {values}." in body["explanation"]
    assert body["evaluated_through"] == this_minute().isoformat()
    rollout.refresh_from_db()
    figures = RolloutEvaluation.objects.get(rollout=rollout).verdict
    assert replayed_figures(rollout, figures) == figures
    stored = RolloutMinute.objects.get(rollout=rollout).counts
    assert stored["target"]["requests"] + stored["baseline"]["requests"] == 300
    assert stored["target"]["units"] == stored["target"]["requests"]


def test_sticky__heavy_users__units_and_clusters_counted(api: Api, spool: Path) -> None:
    rollout = running(api, allocation_type=AllocationType.USER_STICKY)
    made = entries(rollout, 300, users=30)
    store_as_of_then(spool, *made, *entries(rollout, 20, alloc_fallback=True))

    evaluate_rollout(rollout.pk)

    stored = RolloutMinute.objects.get(rollout=rollout).counts
    for arm in ("target", "baseline"):
        rows = [entry.record for entry in made if entry.record.variant == arm]
        assert stored[arm]["requests"] == len(rows)
        assert stored[arm]["units"] == len({row.user_id for row in rows})
    assert set(stored["clusters"]) == set(Metric) - {Metric.STOPPED}
    body = metrics_of(api, rollout)
    assert body["target"]["fallback_request_count"] + body["baseline"]["fallback_request_count"] == 20
    assert sum(body[arm]["request_count"] for arm in ("target", "baseline")) == 320


BUDGET = {"outcome": Outcome.ERROR, "status_code": 429, "error_code": "session_budget_exceeded"}


@pytest.mark.parametrize(
    ("values", "metric", "count", "action"),
    [
        (BUDGET, "unanswered", "unanswered_count", "roll_back"),
        ({"contract_violation": True}, "contract", "contract_violation_count", "roll_back"),
        ({"empty_answer": True}, "empty", "empty_count", "roll_back"),
        ({"finish_reason": "length"}, "truncated", "truncated_count", "hold"),
        ({"fallback_used": True, "other_used": True}, "fallback", "served_by_fallback_count", "hold"),
    ],
    ids=["budget", "contract", "empty", "truncated", "fallback"],
)
def test_signal__every_answer_of_the_target__rolled_back_or_held(
    api: Api, spool: Path, values: dict[str, Any], metric: str, count: str, action: str
) -> None:
    rollout = running(api, mode=Mode.AUTO)
    made = entries(rollout, 300)
    store_as_of_then(spool, *(replaced(entry, values) for entry in made))

    judgement = evaluate_rollout(rollout.pk)

    assert judgement is not None
    assert judgement.moved == ("roll_back" if action == "roll_back" else None)
    body = metrics_of(api, rollout)
    shown = body["metrics"][metric]
    assert (shown["status"], shown["action"], shown["decides"]) == ("failing", action, True)
    assert (shown["target"], shown["baseline"]) == (1, 0)
    assert body["target"][count] == body["target"]["request_count"] > 0
    assert body["baseline"][count] == 0
    figures = RolloutEvaluation.objects.get(rollout=rollout).verdict
    assert replayed_figures(rollout, figures) == figures


def replaced(entry: SpoolEntry, values: dict[str, Any]) -> SpoolEntry:
    """Returns a request of the target with other values, and one of the baseline as it is."""
    if entry.record.variant != Variant.TARGET:
        return entry
    return msgspec.structs.replace(entry, record=msgspec.structs.replace(entry.record, **values))


def test_metrics__every_end_of_a_request__counted_where_it_belongs(api: Api, spool: Path) -> None:
    rollout = running(api)
    made = [
        *entries(rollout, 40),
        *entries(rollout, 20, cache_status="hit"),
        *entries(rollout, 12, outcome=Outcome.ERROR, status_code=429, error_code="requests_per_minute"),
        *entries(rollout, 10, outcome=Outcome.ERROR, status_code=422, error_code="missing_variable"),
        *entries(rollout, 8, outcome=Outcome.CANCELLED, ttft_ms=0),
    ]
    store_as_of_then(spool, *made)
    body = metrics_of(api, rollout)
    total: Counter[str] = Counter()
    for arm in ("target", "baseline"):
        shown = body[arm]
        counted = shown["answered_count"] + shown["unanswered_count"]
        assert counted == shown["request_count"] - shown["cache_hit_count"] - shown["left_out_count"]
        assert shown["unanswered_rate"] == pytest.approx(shown["unanswered_count"] / counted)
        assert sum(shown["unanswered_reasons"].values()) == shown["unanswered_count"]
        total.update({name: value for name, value in shown.items() if name.endswith("_count")})
        assert sum(shown["left_out"].values()) == shown["cache_hit_count"] + shown["left_out_count"]
        total.update(shown["unanswered_reasons"])
        total.update(shown["left_out"])
    assert {name: count for name, count in total.items() if count} == {
        "request_count": 90,
        "cache_hit_count": 20,
        "left_out_count": 12,
        "answered_count": 40,
        "unanswered_count": 18,
        "missing_variable": 10,
        "client_left": 8,
        "cache_hit": 20,
        "requests_per_minute": 12,
    }


def test_metrics__running__forecast_and_what_is_open(api: Api, spool: Path) -> None:
    rollout = running(api, stages=[Stage(50, 60, 500), Stage(100, 0, 0)])
    RolloutTransition.objects.filter(rollout=rollout, action="start").update(created_at=rollout.started_at)
    store_as_of_then(spool, *entries(rollout, 300))
    evaluate_rollout(rollout.pk)
    listed = [
        OpenRequest(f"r{i}", str(rollout.pk), 1, arm, 7, i) for i, arm in enumerate(["target", "target", "baseline"])
    ]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.set(key(str(rollout.pk), "w1"), encode(listed), ex=60)
        client.sadd(workers_key(str(rollout.pk)), "w1")

    body = metrics_of(api, rollout)

    assert body["open_requests"] == {"target": 2, "baseline": 1}
    served = body["stage_requests_evaluated"]
    assert body["forecast"] == {
        "requests_per_minute": pytest.approx(30.0),
        "minutes_to_minima": pytest.approx(max(50.0, (500 - served) / 15), abs=2),
        "evidence_decides": True,
        "explanation": body["forecast"]["explanation"],
    }
    assert "At today's 30 requests a minute both minima" in body["forecast"]["explanation"]


def test_usual_values__day_before__known_from_the_first_minute(api: Api, spool: Path) -> None:
    rollout = running(api)
    before = int((this_minute() - timedelta(hours=2)).timestamp() * 1_000_000)
    of_before: dict[str, Any] = {"rollout_id": "", "variant": "", "alloc_unit": 0, "ts": before}
    failed: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "provider_unavailable"}
    store_as_of_then(
        spool,
        *entries(rollout, 200, prompt_version=1, **of_before),
        *entries(rollout, 20, prompt_version=7, **failed, **of_before),
        *entries(rollout, 5, prompt_version=1, cache_status="hit", **of_before),
        *entries(rollout, 5, prompt_version=1, source="playground", **failed, **of_before),
    )
    evaluate_rollout(rollout.pk)
    state: Any = RolloutEvaluation.objects.get(rollout=rollout).state
    assert state["latency"]["reference"] is not None
    assert sum(state["cost"]["values"].values()) == 200
    # The share of unanswered requests is the config's, whatever version was active.
    assert (state["usual"]["requests"], state["usual"]["unanswered"]) == (220, 20)


def test_metrics__analytics_away__503(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        raise AnalyticsUnavailableError("The analytics store is not available.")

    monkeypatch.setattr(metrics, "arm_totals", away)
    rollout = make_rollout(api.config)
    response = api.client.get(f"{PATH}/{rollout.pk}/metrics")
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (503, "service_unavailable_error")
    assert error["code"] == "analytics_unavailable"
    assert api.client.get(f"{PATH}/{rollout.pk}").status_code == 200


def test_detail__after_a_verdict__in_short(api: Api) -> None:
    rollout = running(api)
    evaluate_rollout(rollout.pk)
    short = api.get(str(rollout.pk))["evaluation"]
    assert (short["status"], short["decision"], short["reason"]) == ("inconclusive", "wait", "minimum_requests")
    assert datetime.fromisoformat(short["decided_at"]) <= datetime.now(UTC)
