from __future__ import annotations

import math
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants import ArmTotals
from core.rights.roles import Role
from rollouts import metrics
from rollouts.comparisons import comparison
from rollouts.evaluate import evaluate_rollout
from rollouts.evaluation import formula_1, to_json
from rollouts.models import Rollout, RolloutEvaluation, RolloutTransition
from rollouts.plots import BUCKETS, plots
from rollouts.selectors import get_rollout
from rollouts.services import promote_rollout, roll_back_rollout
from tests.factories.core import make_project, make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.rollouts.request_log import RequestLog, begun

pytestmark = pytest.mark.django_db

LIST = "/admin/rollouts/rollout/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    return client


def staff(client: Client, role: Role | None, rollout: Rollout) -> Client:
    client.force_login(make_staff(role, rollout.project))
    return client


def page_of(rollout: Rollout) -> str:
    return f"{LIST}{rollout.pk}/change/"


def act(client: Client, action: str, *rollouts: Rollout, **more: str) -> str:
    form = {"action": action, "_selected_action": [str(row.pk) for row in rollouts], **more}
    return client.post(LIST, form, follow=True).content.decode()


def test_list__rollouts__progress_and_status(admin: Client) -> None:
    rollout = make_rollout(started=True, name="shorter")
    make_rollout()
    page = admin.get(LIST).content.decode()
    for text in ("shorter", "1 → 2", "stage 1 of 3, 10 %", "3 stages", rollout.config.name):
        assert text in page
    assert 'value="delete_selected"' not in page
    assert "shorter" in admin.get(LIST, {"q": "short", "status": "running"}).content.decode()


def test_page__evaluated__stages_metrics_plots_and_history(
    admin: Client, still_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    rollout = begun(make_rollout(started=True, name="<b>x</b>"), 10)
    for ago in range(9, 0, -1):
        log.add(rollout, ago, stage=1 + (ago < 5), target=(10, 1), baseline=(30, 1))
    evaluate_rollout(rollout.pk)

    page = admin.get(page_of(rollout)).content.decode()

    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x</b>" not in page
    found = re.findall(r"<svg viewBox=\"0 0 640.*?</svg>", page, re.DOTALL)
    titles = [re.findall("<title>(.*?)</title>", svg)[0] for svg in found]
    assert titles == ["Requests per minute", "Answered requests", "Error rate", "Average latency", "Cost per request"]
    assert all(svg.count("<polyline") == 2 and svg.count("stroke-dasharray") == 1 for svg in found)
    for text in ("10 %", "50 %", "100 %", "The error rate of the target is 10.00 %", "start", "test"):
        assert text in page
    for heading in ("Evidence: worse", "Requests up to now", "Still open", "Present stage"):
        assert heading in page
    buttons = re.findall(r'name="action" value="(\w+)"', page)
    assert buttons == ["pause", "promote", "roll_back", "complete"]


def test_page_and_metrics__first_formula__without_what_it_does_not_know(
    admin: Client, still_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    totals = {"target": ArmTotals("target"), "baseline": ArmTotals("baseline")}
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: totals)
    rollout = begun(make_rollout(started=True), 10)
    state = to_json(formula_1.initial_state(formula_1.Policy(), latency={}, cost={}))
    RolloutEvaluation.objects.filter(rollout=rollout).update(initial=state, state=state, verdict={"formula": 1})
    log.add(rollout, 5, target=(10, 1), baseline=(30, 1))
    evaluate_rollout(rollout.pk)

    page = admin.get(page_of(rollout)).content.decode()

    assert "Average latency" in page
    assert "What would be found" not in page
    assert "Answered requests</title>" not in page
    found = get_rollout(rollout.project_id, rollout.pk)
    shown = comparison(found, metrics.compare(found))
    assert (shown["formula"], shown["power"]) == (1, None)
    assert set(shown["metrics"]) == {"error_rate", "latency_p95", "latency_average", "cost_per_request"}
    errors = shown["metrics"]["error_rate"]
    assert (errors["user_evidence"], errors["users_undecided"], errors["safety_threshold"]) == (
        None,
        False,
        pytest.approx(math.log(20)),
    )


@pytest.mark.parametrize("started", [False, True])
def test_page__not_evaluated__says_so(admin: Client, started: bool) -> None:
    page = admin.get(page_of(make_rollout(started=started))).content.decode()
    assert "No minute with requests has been evaluated yet." in page
    assert "not yet" in page


def test_page__version_rolled_back_before__links_to_it(admin: Client) -> None:
    first = make_rollout(started=True)
    roll_back_rollout(project_id=first.project_id, rollout_id=first.pk, actor="test")
    assert "Rolled back before" not in admin.get(page_of(first)).content.decode()
    page = admin.get(page_of(make_rollout(first.config))).content.decode()
    assert "Rolled back before" in page
    assert page_of(first) in page


def test_page__log_answers_or_not__counts_or_a_sentence(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    target = ArmTotals(
        "target", requests=50, counted=30, errors=3, cache_hits=8, unanswered=4, reasons={"client_left": 4}
    )
    found = {"target": target, "baseline": ArmTotals("baseline")}
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: found)
    rollout = make_rollout(started=True)
    page = " ".join(admin.get(page_of(rollout)).content.decode().split())
    for row in (
        "<th>Requests allocated</th><td>50</td><td>0</td>",
        "<th>Answered</th><td>38 (90.48 %)</td><td>0</td>",
        "<th>Unanswered</th><td>4 (9.52 %)</td><td>0</td>",
        "<th>Unanswered: client left</th><td>4</td><td>0</td>",
        "<th>Errors</th><td>3 (10.00 %)</td><td>0</td>",
    ):
        assert row in page

    def away(*_: object) -> object:
        raise AnalyticsUnavailableError("away")

    monkeypatch.setattr(metrics, "arm_totals", away)
    assert "The request log does not answer just now." in admin.get(page_of(rollout)).content.decode()


def test_page__ended__no_buttons(admin: Client) -> None:
    rollout = make_rollout(started=True)
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    page = admin.get(page_of(rollout)).content.decode()
    assert "rolled_back" in page
    assert 'name="action"' not in page


def test_page__posted_fields__nothing_changes(admin: Client) -> None:
    rollout = make_rollout()
    admin.post(page_of(rollout), {"name": "renamed", "status": "completed"})
    rollout.refresh_from_db()
    assert (rollout.name == "renamed", rollout.status) == (False, "pending")


def test_page__unknown__404(admin: Client) -> None:
    assert admin.get(f"{LIST}{make_project().pk}/change/").status_code == 404


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
def test_action__confirmed__done_and_in_both_trails(admin: Client, action: str, started: bool, status: str) -> None:
    rollout = make_rollout(started=started)
    before = RolloutTransition.objects.count()

    question = act(admin, action, rollout)

    assert f"Yes, {action.replace('_', ' ')}" in question
    assert RolloutTransition.objects.count() == before
    stage = str(rollout.current_stage)
    answer = act(admin, action, rollout, confirmed="yes", reason="as agreed", **{f"stage_{rollout.pk}": stage})
    assert f"is now {status.replace('_', ' ')}" in answer
    move = RolloutTransition.objects.latest("id")
    assert (move.action, move.actor, move.reason, move.to_status) == (action, "user:root", "as agreed", status)
    entry = LogEntry.objects.get()
    assert (entry.object_id, "as agreed" in entry.change_message) == (str(rollout.pk), True)


def test_action__several__each_moved_or_refused(admin: Client) -> None:
    running, pending = make_rollout(started=True), make_rollout(make_config(versions=2))
    answer = act(admin, "pause", running, pending, confirmed="yes", reason="")
    assert f"Rollout {running.name} is now paused." in answer
    assert f"Rollout {pending.name}: Cannot pause a rollout that is pending" in answer


def test_promote__moved_since_the_question__refused(admin: Client) -> None:
    rollout = make_rollout(started=True)
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="auto")
    answer = act(admin, "promote", rollout, confirmed="yes", reason="", **{f"stage_{rollout.pk}": "1"})
    assert "moved to another stage" in answer
    rollout.refresh_from_db()
    assert rollout.current_stage == 2


def test_action__reason_too_long__question_repeated(admin: Client) -> None:
    rollout = make_rollout()
    assert "at most 1000" in act(admin, "start", rollout, confirmed="yes", reason="x" * 1001)
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_staff__may_only_view__sees_and_cannot_act(client: Client) -> None:
    rollout = make_rollout()
    viewer = staff(client, Role.READER, rollout)
    page = viewer.get(page_of(rollout)).content.decode()
    assert rollout.name in page
    assert 'name="action"' not in page
    act(viewer, "start", rollout, confirmed="yes", reason="")
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_staff__without_permission__403(client: Client) -> None:
    rollout = make_rollout()
    stranger = staff(client, None, rollout)
    assert stranger.get(LIST).status_code == stranger.get(page_of(rollout)).status_code == 403


def test_add_and_delete__active__refused(admin: Client) -> None:
    rollout = make_rollout()
    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"}).status_code == 403
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    admin.post(f"{LIST}{rollout.pk}/delete/", {"post": "yes"})
    assert not Rollout.objects.exists()


def test_plots__thousands_of_minutes__few_points() -> None:
    arm = {"requests": 5, "errors": 1, "latency": {"9": 4}, "latency_ms": 400, "cost": {}, "cost_usd": "0"}
    rows = [{"minute": 100 + number, "stage": 1, "target": arm, "baseline": arm} for number in range(5000)]
    requests, errors, latency, cost = plots(rows)
    for plot in (requests, errors, latency):
        points = re.findall(r'points="([^"]+)"', plot.svg)
        assert [len(line.split()) <= BUCKETS for line in points] == [True, True]
    assert "20 %" in errors.svg
    assert "100 ms" in latency.svg
    assert 'points=""' in cost.svg
    assert plots([]) == []


def test_plots__answers_counted__their_share_on_an_axis_that_shows_it() -> None:
    arm = {"latency": {}, "latency_ms": 0, "cost": {}, "cost_usd": "0", "requests": 50, "judged": 40, "errors": 4}
    rows = [
        {"minute": 7, "stage": 1, "target": {**arm, "unanswered": 6}, "baseline": {**arm, "unanswered": 1}},
        {"minute": 8, "stage": 1, "target": {**arm, "unanswered": 6}, "baseline": {**arm, "unanswered": 1}},
    ]
    found = {plot.title: plot.svg for plot in plots(rows)}
    answered = found["Answered requests"]
    assert ">80 %</text>" in answered
    assert ">100 %</text>" in answered
    baseline, target = ([float(y) for y in re.findall(r",(\S+?)[ \"]", line)] for line in answered.split("points=")[1:])
    assert max(baseline) < min(target)
    assert "10 %" in found["Error rate"]
