"""The forecast of a rollout before it is made: durations of its stages from the traffic of the last 24 hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants.totals import ConfigTraffic
from analytics.request_log.record import Outcome
from analytics.request_log.sources import NOT_OF_USERS, Source
from rollouts.allocation import AllocationType
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.forecasts import plan as planning
from rollouts.forecasts.plan import Plan, plan_of
from rollouts.states import DEFAULT_STAGES, Stage
from tests.factories.analytics import make_entry, store
from tests.rollouts.conftest import PATH, Api

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
STAGES = (Stage(10, 60, 100), Stage(50, 60, 400), Stage(100, 30, 0))


def plan(
    per_minute: float = 60, *, unanswered: float = 0.0, hours: float = 24, stages: Any = STAGES, **traffic: Any
) -> Plan:
    requests = round(per_minute * hours * 60)
    given = ConfigTraffic(requests, round(requests * unanswered), NOW - timedelta(hours=hours), **traffic)
    return plan_of(given, stages, AllocationType.RANDOM, now=NOW)


def test_plan__much_traffic__stages_last_their_minutes() -> None:
    found = plan(60)
    assert (found.requests_per_minute, found.unanswered_rate) == (60, 0)
    assert [stage.minutes for stage in found.stages] == [60, 60, 30]
    assert [stage.begins_after_minutes for stage in found.stages] == [0, 60, 120]
    assert [stage.target_requests for stage in found.stages] == [360, 1800, 1800]
    assert found.minutes == 150
    assert "At today's 60 requests a minute the stages take about 3 hours" in found.explanation
    assert "From 50 % on each of them waits until the evidence is enough to pass." in found.explanation


def test_plan__little_traffic__stages_last_until_enough_is_answered() -> None:
    found = plan(1, unanswered=0.5)
    assert [stage.minutes for stage in found.stages] == pytest.approx([100 / 0.05, 400 / 0.25, 30])


def test_plan__config_an_hour_old__its_own_hour_is_the_measure() -> None:
    assert plan(30, hours=6).requests_per_minute == 30
    assert plan(60, hours=0.5).requests_per_minute == 30


def test_plan__no_requests__unknown_but_for_stages_without_a_minimum() -> None:
    found = plan_of(ConfigTraffic(), STAGES, AllocationType.RANDOM, now=NOW)
    assert (found.requests_per_minute, found.unanswered_rate, found.power, found.minutes) == (None, None, None, None)
    assert [stage.minutes for stage in found.stages] == [None, None, 30]
    assert [stage.begins_after_minutes for stage in found.stages] == [0, None, None]
    assert "no requests in the last 24 hours" in found.explanation


def test_plan__nothing_is_answered__never_ends() -> None:
    found = plan(10, unanswered=1.0)
    assert found.minutes is None
    assert "none is answered" in found.explanation


def test_plan__latencies_known__power_also_of_slowness() -> None:
    latency = {bin_of(200): 500, bin_of(400): 500, bin_of(900): 200}
    found = plan(60, unanswered=0.02, stages=DEFAULT_STAGES, latency=latency)
    assert found.power is not None
    assert found.power.fall.answered_share == pytest.approx(0.98)
    assert found.power.slower_minutes is not None
    assert any("1.3 times as slow" in sentence for sentence in found.power.sentences)


def test_plan__stages_that_settle__slowness_is_found_later_and_falls_are_not() -> None:
    latency = {bin_of(200): 500, bin_of(400): 500, bin_of(900): 200}
    found = [
        plan(60, stages=[Stage(10, 600, 0, settle), Stage(100, 0, 0)], latency=latency).power for settle in (0, 20)
    ]
    assert found[0] is not None and found[1] is not None
    assert found[0].slower_minutes is not None
    assert found[1].slower_minutes == pytest.approx(found[0].slower_minutes + 20)
    assert found[0].fall == found[1].fall


def test_plan__sticky__says_that_it_takes_longer() -> None:
    given = ConfigTraffic(60 * 24 * 60, 0, NOW - timedelta(days=1))
    power = plan_of(given, STAGES, AllocationType.USER_STICKY, now=NOW).power
    assert power is not None
    assert "sticky allocation it takes longer" in power.sentences[-1]


@pytest.mark.django_db
class TestForecast:
    def forecast(self, api: Api, **body: Any) -> Any:
        return api.client.post(f"{PATH}/forecast", {"config_id": str(api.config.pk), **body})

    def test_forecast__stored_requests__those_that_a_rollout_would_compare(
        self, api: Api, clickhouse: None, tmp_path: Path
    ) -> None:
        at = int((datetime.now(UTC) - timedelta(minutes=90)).timestamp() * 1_000_000)
        usual: dict[str, Any] = {
            "project_id": str(api.project.pk),
            "prompt_config_id": str(api.config.pk),
            "prompt_version": 1,
        }
        users = [source.value for source in Source if source.is_of_users]
        entries = [
            make_entry(**usual, ts=at + number, latency_ms=300, source=users[number % len(users)])
            for number in range(180)
        ]
        entries += [
            make_entry(**usual, outcome=Outcome.ERROR, status_code=503, error_code="provider_error") for _ in range(20)
        ]
        entries += [
            make_entry(**usual, cache_status="hit"),
            *(make_entry(**usual, source=source) for source in NOT_OF_USERS),
            make_entry(**{**usual, "prompt_config_id": str(uuid4())}),
            make_entry(**{**usual, "project_id": str(uuid4())}),
            make_entry(**{**usual, "ts": at - 86_400 * 1_000_000}),
        ]
        store(tmp_path, *entries)

        body = self.forecast(
            api, stages=[{"weight": 50, "min_requests": 90, "min_duration_minutes": 30, "settle_minutes": 9}]
        ).json()

        assert body["request_count"] == 200
        assert body["requests_per_minute"] == pytest.approx(200 / 90, rel=0.01)
        assert body["unanswered_rate"] == pytest.approx(0.1)
        (stage,) = body["stages"]
        assert (stage["number"], stage["weight"], stage["begins_after_minutes"]) == (1, 50, 0)
        assert (stage["min_duration_minutes"], stage["settle_minutes"]) == (30, 9)
        assert stage["minutes"] == body["minutes"] == pytest.approx(90, rel=0.01)
        assert stage["target_requests"] == pytest.approx(100, rel=0.01)
        assert body["power"]["fall"]["answered_share"] == pytest.approx(0.9)
        assert body["evidence_decides"] is True

    def test_forecast__without_stages__default_ones_and_nothing_made(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(planning, "config_traffic", lambda *_, **__: ConfigTraffic())
        body = self.forecast(api).json()
        assert [stage["weight"] for stage in body["stages"]] == [1, 5, 10, 25, 50, 75, 100]
        assert body["power"] is None
        assert api.client.get(PATH).json()["count"] == 0

    def test_forecast__bad_input__names_the_field(self, api: Api) -> None:
        answer = self.forecast(api, stages=[{"weight": 10}, {"weight": 5}])
        assert answer.status_code == 400
        assert "stages.1.weight" in str(answer.json())
        assert self.forecast(api, name="x").status_code == 400
        assert self.forecast(api, config_id=str(uuid4())).status_code == 404

    def test_forecast__store_away__503(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_: Any, **__: Any) -> ConfigTraffic:
            raise AnalyticsUnavailableError("away")

        monkeypatch.setattr(planning, "config_traffic", away)
        assert self.forecast(api).status_code == 503
