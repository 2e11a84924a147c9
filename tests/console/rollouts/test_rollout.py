"""The page of one rollout: its figures are those of the API, and its forms make transitions."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
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
from rollouts.models import Rollout, RolloutEvaluation, RolloutMinute, RolloutTransition
from rollouts.selectors import get_rollout
from rollouts.services import promote_rollout, roll_back_rollout
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.core import make_staff
from tests.factories.rollouts import make_rollout
from tests.rollouts.request_log import RequestLog, begun

pytestmark = pytest.mark.django_db

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
    """Arms without requests, in place of the request log."""
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
    places = [text.index(f'id="panel-{name}"') for name in ("verdict", "metrics", "plots", "requests", "history")]
    assert places == sorted(places)
    assert "Running, stage 1 of 3: 10 % of the requests get version 2." in text
    titles = re.findall("<figcaption[^>]*>(.*?)</figcaption>", text)
    assert titles == ["Requests a minute", "Unanswered", "Error rate", "Average latency", "Cost of a request"]
    assert "may fail from here" in text
    assert 'data-refresh="60"' in text


def test_page__evaluated__figures_of_the_api(client: Client, evaluated: Rollout) -> None:
    text = shown(signed_in(client, evaluated), evaluated)
    answer = comparison(evaluated, metrics.compare(evaluated))
    assert answer["explanation"] in text.replace("&#x27;", "'")
    for row in metric_rows(answer["metrics"]):
        assert f'<td data-label="Target" class="number">{row.target}</td>' in text
        assert row.difference in text
        assert row.explanation in text
    errors = answer["metrics"]["error_rate"]
    assert errors["failing_difference"] == pytest.approx(max(0.005, 0.25 * errors["baseline"]))


def test_page__arms__requests_and_failures_linked(client: Client, evaluated: Rollout) -> None:
    text = shown(signed_in(client, evaluated), evaluated)
    links = [link for link in re.findall(r'href="([^"]+)"', text) if "/admin/analytics/requests/?" in link]
    mine = [link for link in links if f"rollout_id={evaluated.pk}" in link]
    assert [("variant=target" in link, "outcome=error" in link) for link in mine] == [
        (True, False),
        (True, True),
        (False, False),
        (False, True),
    ]
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
    found = get_rollout(rollout.project_id, rollout.pk)
    answer = comparison(found, metrics.compare(found))
    assert (answer["reason"], answer["overall_status"]) == ("not_evaluated", "inconclusive")
    assert answer["explanation"].startswith(told)


@pytest.mark.parametrize(
    ("started", "sentence"), [(False, "Not started: every request gets version 1."), (True, "Running, stage 1 of 3")]
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
        '<th scope="row">Unanswered: client left</th><td>4</td><td>0</td>',
        '<th scope="row">Errors</th><td>3 (10 %)</td><td>0</td>',
    ):
        assert row in text

    def away(*_: object) -> object:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(metrics, "arm_totals", away)
    text = shown(client, rollout)
    assert "The analytics store does not answer." in text
    assert "Running, stage 1 of 3" in text


def test_page__rolled_back__why_and_no_actions(client: Client, totals: None) -> None:
    rollout = make_rollout(started=True)
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test", reason="users complained")
    text = shown(signed_in(client, rollout), rollout)
    assert "Rolled back: version 1 is served to everybody." in text
    assert ": users complained</p>" in text
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


@pytest.mark.parametrize(
    ("action", "started", "status"),
    [
        ("start", False, "running"),
        ("pause", True, "paused"),
        ("promote", True, "running"),
        ("roll_back", True, "rolled_back"),
        ("complete", True, "completed"),
    ],
)
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
    assert "Running, stage 1 of 3" in text
    assert "<html" not in text
    assert rollout.started_at is not None
    assert rollout.started_at - rollout.created_at < timedelta(minutes=1)
