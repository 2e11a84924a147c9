from __future__ import annotations

import re
from datetime import timedelta
from html import escape, unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants import ArmTotals
from core.roles import Role
from rollouts.comparison import metrics
from rollouts.comparison.tables import metric_rows
from rollouts.comparison.wire import comparison
from rollouts.evaluation import Metric, Reason
from rollouts.models import Rollout, RolloutEvaluation, RolloutMinute, RolloutTransition
from rollouts.selectors import get_rollout
from rollouts.services import promote_rollout, roll_back_rollout, start_rollout
from rollouts.states import Stage
from rollouts.verdicts.evaluate import evaluate_rollout
from rollouts.verdicts.figures import figures_before_any
from tests.factories.core import make_key, make_staff
from tests.factories.rollouts import make_rollout
from tests.rollouts.request_log import RequestLog, begun
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

ANSWERS = ("Breaks its schema", "Cut off", "Served by another model", "Empty")
TOTALS = {"target": ArmTotals("target"), "baseline": ArmTotals("baseline")}


def path_of(rollout: Rollout) -> str:
    return f"/admin/rollouts/rollout/{rollout.pk}/change/"


def signed_in(client: Client, rollout: Rollout, role: Role | None = Role.EDITOR) -> Client:
    client.force_login(make_staff(role, rollout.project))
    return client


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    text: str = b"".join(answer.streaming_content).decode()
    return " ".join(text.split())


def shown(client: Client, rollout: Rollout) -> str:
    return text_of(client.get(path_of(rollout)))


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "signals_of", lambda _: None)
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: TOTALS)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch, still_clock: None, totals: None) -> Rollout:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    rollout = begun(make_rollout(started=True, name="<b>x</b>"), 10)
    for ago in range(9, 0, -1):
        log.add(rollout, ago, stage=1 + (ago < 5), target=(10, 1), baseline=(30, 1))
    evaluate_rollout(rollout.pk)
    return get_rollout(rollout.project_id, rollout.pk)


def test_page__evaluated__verdict_first_then_metrics_plots_and_history(client: Client, evaluated: Rollout) -> None:
    text = shown(signed_in(client, evaluated), evaluated)
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert "<b>x</b>" not in text
    places = [text.index(f'id="panel-{name}"') for name in ("verdict", "metrics", "segments", "requests", "history")]
    assert places == sorted(places)
    assert "<strong>Stage 1 of 3 · 10 % · " in text
    titles = re.findall("<figcaption[^>]*>(.*?)</figcaption>", text)
    of_metrics = ("Unanswered", "Errors", *ANSWERS, "Stopped by the user", "Latency, average", "Cost of a request")
    assert titles == [*(f"{name}, over time" for name in of_metrics), "Requests a minute"]
    assert "may fail from here" in text
    assert 'data-refresh="60"' in text


def test_page__evaluated__figures_of_the_api(client: Client, evaluated: Rollout) -> None:
    text = shown(signed_in(client, evaluated), evaluated)
    answer = comparison(evaluated)
    assert answer["explanation"] in text.replace("&#x27;", "'")
    rows = metric_rows(answer["metrics"])
    assert len(rows) == len(Metric)
    for row in rows:
        [shown_row] = re.findall(
            f'<details class="metric" id="metric-{row.name}".*?</details> (?=<details|</div>)', text
        )
        assert row.label in shown_row
        assert f"<b>{row.target}</b> <small>against {row.baseline}</small>" in shown_row
        assert f'<span class="metric-sentence">{escape(row.sentence)}</span>' in shown_row
        for name, value in row.numbers:
            assert f"<dt>{name}</dt><dd>{escape(value)}</dd>" in shown_row
    errors = answer["metrics"]["error_rate"]
    assert errors["failing_difference"] == pytest.approx(max(0.005, 0.25 * errors["baseline"]))


def test_page__arms__requests_and_failures_linked(client: Client, evaluated: Rollout) -> None:
    text = shown(signed_in(client, evaluated), evaluated)
    links = [link for link in re.findall(r'href="([^"]+)"', text) if "/admin/analytics/requests/?" in link]
    mine = [link for link in links if f"rollout_id={evaluated.pk}" in link]
    assert [("variant=target" in link, "outcome=error" in link) for link in mine[-4:]] == [
        (True, False),
        (True, True),
        (False, False),
        (False, True),
    ]
    of_metrics = {
        query for link in mine[:-4] for query in ("outcome=error", "outcome=cancelled", "sort=") if query in link
    }
    assert of_metrics == {"outcome=error", "outcome=cancelled", "sort="}
    assert all("variant=target" in link for link in mine[:-4] if "variant=" in link)
    assert all("range=custom" in link and "start=" in link for link in mine)
    of_prompt = [unescape(link) for link in re.findall(r'href="([^"]+)"', text) if str(evaluated.config_id) in link]
    for query in ("version=1", "version=2", "version=2&against=1"):
        assert any(link.endswith(query) for link in of_prompt), query


def test_page_and_metrics__judged_by_another_formula__say_so(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    RolloutEvaluation.objects.filter(rollout=rollout).update(verdict={"formula": 1}, decided_at=timezone.now())
    counts = {"minute": 29_000_000, "target": {"requests": 3}, "baseline": {"requests": 9}}
    RolloutMinute.objects.create(rollout=rollout, minute=timezone.now(), stage=1, counts=counts)
    told = "This rollout was judged by formula 1, which this version does not have"

    text = shown(signed_in(client, rollout), rollout)

    assert told in text
    assert "No minute with requests has been judged yet." in text
    answer = comparison(get_rollout(rollout.project_id, rollout.pk))
    assert (answer["reason"], answer["overall_status"]) == ("not_evaluated", "inconclusive")
    assert answer["explanation"].startswith(told)


@pytest.mark.parametrize(
    ("started", "sentence"), [(False, "Not started · every request gets version 1"), (True, "Stage 1 of 3 · 10 %")]
)
def test_page__not_evaluated__says_so(client: Client, totals: None, started: bool, sentence: str) -> None:
    rollout = make_rollout(started=started)
    text = shown(signed_in(client, rollout), rollout)
    for part in (sentence, "No minute with requests has been judged yet.", "Not judged yet"):
        assert part in text


def test_page__version_rolled_back_before__links_to_it(client: Client, totals: None) -> None:
    first = make_rollout(started=True)
    roll_back_rollout(project_id=first.project_id, rollout_id=first.pk, actor="test")
    signed_in(client, first)
    assert "was rolled back before" not in shown(client, first)
    text = shown(client, make_rollout(first.config))
    assert "was rolled back before" in text
    assert path_of(first) in text


def test_page__log_answers_or_not__counts_or_a_message(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ArmTotals(
        "target",
        requests=50,
        compared=42,
        counted=30,
        errors=3,
        unanswered=4,
        reasons={"client_left": 4},
        left_out={"cache_hit": 8},
    )
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: {**TOTALS, "target": target})
    rollout = make_rollout(started=True)
    text = shown(signed_in(client, rollout), rollout)
    for row in (
        '<th scope="row">Requests allocated</th><td>50</td><td>0</td>',
        '<th scope="row">Answered</th><td>38 (90.5 %)</td><td>0</td>',
        '<th scope="row">Unanswered</th><td>4 (9.5 %)</td><td>0</td>',
        '<th scope="row">Unanswered: the client left</th><td>4</td><td>0</td>',
        '<th scope="row">Errors</th><td>3 (10 %)</td><td>0</td>',
    ):
        assert row in text

    def away(*_: object) -> object:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(metrics, "arm_totals", away)
    text = shown(client, rollout)
    assert "The analytics store does not answer." in text
    assert "Stage 1 of 3 · 10 %" in text


def test_page__rolled_back__why_and_no_actions(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test", reason="users complained")
    text = shown(signed_in(client, rollout), rollout)
    assert "Rolled back · version 1 is served to everybody" in text
    assert re.search("<strong>Rolled back by test, <time .*?</time>.</strong> users complained</p>", text)
    assert 'name="action"' not in text
    assert "data-refresh" not in text


def test_page__reader__sees_and_cannot_move(client: Client, totals: None) -> None:
    rollout = make_rollout()
    for role in (Role.READER, Role.READER_WITHOUT_CONTENT):
        signed_in(client, rollout, role)
        assert 'name="action"' not in shown(client, rollout)
        assert client.post(path_of(rollout), {"action": "start"}).status_code == 403
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_page__others_and_unknown__403_and_404(client: Client) -> None:
    rollout, other = make_rollout(), make_rollout()
    assert signed_in(client, rollout, None).get(path_of(rollout)).status_code == 403
    signed_in(client, rollout)
    assert client.get(path_of(other)).status_code == 404
    assert client.get(f"/admin/rollouts/rollout/{uuid4()}/change/").status_code == 404
    assert client.get("/admin/rollouts/rollout/x/change/").status_code == 404
    moved = client.get(f"/admin/rollouts/rollout/{rollout.pk.hex}/change/")
    assert (moved.status_code, moved["location"]) == (302, path_of(rollout))


@tabled
def test_move__reason_given__made_and_in_both_trails(
    client: Client, totals: None, action: str, started: bool, status: str
) -> None:
    rollout = make_rollout(started=started)
    signed_in(client, rollout)
    assert f'value="{action}"' in shown(client, rollout)

    answer = client.post(
        path_of(rollout), {"action": action, "reason": "as agreed", "stage": rollout.current_stage}, follow=True
    )

    assert f"is now {status.replace('_', ' ')}." in text_of(answer)
    move = RolloutTransition.objects.latest("id")
    assert (move.action, move.reason, move.to_status) == (action, "as agreed", status)
    assert move.actor.startswith("user:")
    entry = LogEntry.objects.get()
    assert (entry.object_id, "as agreed" in entry.change_message) == (str(rollout.pk), True)


def test_promote__moved_since_the_page__refused(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="auto")
    signed_in(client, rollout)
    answer = client.post(path_of(rollout), {"action": "promote", "reason": "", "stage": "1"}, follow=True)
    assert "moved to another stage" in text_of(answer)
    rollout.refresh_from_db()
    assert rollout.current_stage == 2


def test_move__reason_too_long__kept_with_the_error(client: Client, totals: None) -> None:
    rollout = make_rollout()
    signed_in(client, rollout)
    text = text_of(client.post(path_of(rollout), {"action": "start", "reason": "x" * 1001}))
    assert "at most 1000" in text
    assert "x" * 1001 in text
    rollout.refresh_from_db()
    assert rollout.status == "pending"
    assert client.post(path_of(rollout), {"action": "explode"}).status_code == 404


def test_panel__alone__its_content_only(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    text = text_of(signed_in(client, rollout).get(path_of(rollout), {"panel": "verdict"}))
    assert "Stage 1 of 3 · 10 %" in text
    assert "<html" not in text
    assert rollout.started_at is not None
    assert rollout.started_at - rollout.created_at < timedelta(minutes=1)


def decided(rollout: Rollout, **changes: Any) -> None:
    found = RolloutEvaluation.objects.get(pk=rollout.pk)
    RolloutEvaluation.objects.filter(pk=rollout.pk).update(
        verdict={**(found.verdict or figures_before_any(rollout)), **changes}, decided_at=timezone.now()
    )


@pytest.mark.parametrize("reason", Reason)
def test_page__every_reason__on_top_where_it_stops_the_rollout(client: Client, totals: None, reason: Reason) -> None:
    rollout = make_rollout(started=True)
    decided(rollout, reason=reason.value, decision="wait", explanation="So it is. Do that.")
    text = shown(signed_in(client, rollout), rollout)
    assert "So it is. Do that." in text
    held = reason not in {
        Reason.MINIMUM_DURATION, Reason.MINIMUM_REQUESTS, Reason.INCONCLUSIVE, Reason.NO_FAILURE, Reason.PASSING,
        Reason.NO_CONTROL, Reason.QUALITY_INCONCLUSIVE, Reason.GOAL_BETTER, Reason.GOAL_NOT_BETTER,
        Reason.GOAL_UNDECIDED,
    }  # fmt: skip
    assert ("<strong>Held at 10 %.</strong> So it is. Do that." in text) is held
    assert ("What the versions differ in" in text) is held


def test_page__verdict_against_a_rollout_by_hand__says_that_a_person_decides(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    decided(rollout, reason="metric_failing", decision="roll_back", explanation="Errors: 9 % against 1 %.")
    text = shown(signed_in(client, rollout), rollout)
    assert "The verdict is to roll it back, which a person decides here." in text
    assert "Failed requests of the target" in text


def test_page__waits_for_a_day__says_so(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    decided(rollout, reason="inconclusive", decision="wait", overdue=True)
    assert "Waits a day longer than its minima ask for." in shown(signed_in(client, rollout), rollout)


def test_page__stages__done_present_and_to_come(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="auto")
    text = shown(signed_in(client, rollout), rollout)
    found = re.findall('<li class="step-(.*?)"(.*?)><strong>(.*?)</strong> <span>(.*?)</span>', text)
    assert found == [
        ("completed", "", "10 %", "done"),
        ("active", ' aria-current="step"', "50 %", "present"),
        ("pending", "", "100 %", "to come"),
    ]


def test_page__left_out__by_reason_and_arm(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = make_rollout(started=True)
    left = {"target": {"cache_hit": 2}, "baseline": {"requests_per_minute": 1_200, "new_code": 1}}
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: {arm: ArmTotals(arm, left_out=left[arm]) for arm in left})
    counts = figures_before_any(rollout)["counts"]
    decided(rollout, counts={arm: {**counts[arm], "uncompared": 3} for arm in counts})
    text = shown(signed_in(client, rollout), rollout)
    for row in (
        '<th scope="row">Answered from the cache</th><td>2</td><td>0</td>',
        '<th scope="row">Refused: requests per minute</th><td>0</td><td>1,200</td>',
        '<th scope="row">Refused: new code</th><td>0</td><td>1</td>',
        '<th scope="row">Asked before: in a cache</th><td>3</td><td>3</td>',
    ):
        assert row in text


def test_page__actors__named_as_people_know_them(client: Client, totals: None) -> None:
    rollout = make_rollout()
    key = make_key(rollout.project, name="deploy")[0]
    Rollout.objects.filter(pk=rollout.pk).update(created_by=f"key:{key.pk}")
    start_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="user:ann")
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="auto")
    text = shown(signed_in(client, rollout), rollout)
    assert "by deploy (key)." in text
    assert re.findall('<td data-label="Who">(.*?)</td>', text) == ["itself", "ann", "test"]


def test_heading__requests_are_missing__how_many_and_how_long(
    client: Client, monkeypatch: pytest.MonkeyPatch, still_clock: None, totals: None
) -> None:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    rollout = begun(make_rollout(started=True, stages=(Stage(10, 0, 60), Stage(100, 0, 0))), 10)
    RolloutTransition.objects.filter(rollout=rollout).update(created_at=rollout.started_at)
    for ago in range(9, 0, -1):
        log.add(rollout, ago, target=(4, 0), baseline=(36, 0))
    evaluate_rollout(rollout.pk)
    text = shown(signed_in(client, rollout), rollout)
    assert "<strong>Stage 1 of 2 · 10 % · needs 24 more requests, about 7 minutes</strong>" in text
