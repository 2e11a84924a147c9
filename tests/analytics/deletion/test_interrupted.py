"""Deletions that are interrupted, postponed or overlap are finished later, and show nothing meanwhile."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion import services
from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.models import Deletion, DeletionBatch, DeletionState
from analytics.reconciliation.leases import repair_lease
from analytics.reconciliation.services import reconcile
from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.analytics.deletion import deleting
from tests.analytics.deletion.deleting import SESSION, entry, path_of, soon
from tests.factories.analytics import store
from tests.night import cases

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

STEPS = [
    "payloads", "anonymised", "requests", "session_days", "user_sessions", "users_daily", "users_hourly", "otel_traces",
]  # fmt: skip


def test_records__that_arrive_after_the_deletion__go_too_and_later_requests_stay(
    api: APIClient, project: Project, stored: list[SpoolEntry], spool: Path
) -> None:
    deleting.erase(api, path_of(SESSION))
    deletion = Deletion.objects.get()
    late = entry(project, 10, user_id="ottilie", session_id=SESSION)
    after = entry(project, -30, user_id="ottilie", session_id=SESSION)
    store(spool, late, after)

    assert finish_due(soon(5)) == 1

    assert api.get(path_of(SESSION)).json()["request_count"] == 1
    assert api.get(f"/api/llm/requests/{late.record.request_id}").status_code == 404
    assert api.get(f"/api/llm/requests/{after.record.request_id}").status_code == 200
    deletion.refresh_from_db()
    assert (deletion.state, deletion.requests, deletion.looks) == (DeletionState.ERASED, 4, 2)
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


# What is broken off after a step is as what is broken off before the next one, which is for the day. One loop repairs
# the four tables of figures; other tests of this module break off `users_daily`.
BY_DAY = [step for step in STEPS if step not in ("user_sessions", "users_daily")]
BREAKS = cases(
    list(product(STEPS, ("before", "after"))), by_day=[*((step, "before") for step in BY_DAY), (STEPS[-1], "after")]
)


@pytest.mark.parametrize(("step", "when"), BREAKS)
def test_deletion__broken_off_at_any_step__is_finished_by_the_task(
    api: APIClient,
    project: Project,
    stored: list[SpoolEntry],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    when: str,
) -> None:
    before = deleting.totals(api, project)
    deleting.insert_spans(project, SESSION, "other")
    with monkeypatch.context() as patched:
        deleting.break_off(patched, step, after=when == "after")
        deleting.erase(api, path_of(SESSION))
    assert Deletion.objects.get().state == DeletionState.PENDING

    finish_due(soon(5))

    assert Deletion.objects.get().state == DeletionState.ERASED
    assert Deletion.objects.get().requests == 3
    assert not DeletionBatch.objects.exists()
    assert api.get(path_of(SESSION)).status_code == 404
    assert deleting.found_in_search(api) == 4
    assert deleting.totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletion__broken_off__shows_nothing_meanwhile_and_is_not_there_to_be_deleted_again(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = deleting.totals(api, project)
    with monkeypatch.context() as patched:
        deleting.break_off(patched, "users_daily", after=False)
        deleting.erase(api, path_of(SESSION))

    deleting.assert_not_shown(api, stored[0].record.request_id)
    finish_due(soon(5))
    deleting.assert_not_shown(api, stored[0].record.request_id)
    assert deleting.totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_request__broken_off_and_requested_again__is_done_then(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = deleting.totals(api, project)
    path = f"/api/llm/requests/{stored[0].record.request_id}"
    with monkeypatch.context() as patched:
        deleting.break_off(patched, "users_daily", after=False)
        assert api.delete(path).status_code == 503

    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert deleting.totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_sessions__deleted_faster_than_they_are_erased__are_erased_before_the_answer(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_MAX_UNDER_WAY", 2)
    store(spool, *(entry(project, 3, session_id=f"s{number}") for number in range(4)))

    for number in range(4):
        assert api.delete(path_of(f"s{number}")).status_code == 204

    states = list(Deletion.objects.order_by("requested_at").values_list("state", flat=True))
    assert states == [DeletionState.PENDING, DeletionState.PENDING, DeletionState.ERASED, DeletionState.ERASED]
    assert api.get("/api/llm/sessions").json()["results"] == []


def test_session__that_goes_on_while_it_is_deleted__shows_what_is_new(
    api: APIClient, project: Project, stored: list[SpoolEntry], spool: Path
) -> None:
    assert api.delete(path_of(SESSION)).status_code == 204
    after = entry(project, -30, user_id="ottilie", session_id=SESSION)
    store(spool, after)

    assert api.get(f"/api/llm/requests/{after.record.request_id}").status_code == 200
    assert deleting.found_in_search(api) == 5
    finish_due(soon(5))
    assert api.get(path_of(SESSION)).json()["request_count"] == 1


def test_spans_and_logs__of_a_session_that_is_being_deleted__are_not_shown(api: APIClient, project: Project) -> None:
    deleting.insert_spans(project, "gone", "other")

    assert api.delete(path_of("gone")).status_code == 204

    for session, count in (("gone", 0), ("other", 1)):
        shown = api.get(f"/api/projects/{project.pk}/llm/sessions/{session}/telemetry").json()
        assert (len(shown["spans"]), len(shown["logs"])) == (count, count), session
    assert api.delete(path_of("gone")).status_code == 404


def test_request_of_a_session__both_deletions_broken_off__counted_once(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = deleting.totals(api, project)
    with monkeypatch.context() as patched:
        deleting.break_off(patched, "anonymised", after=True)
        assert api.delete(f"/api/llm/requests/{stored[0].record.request_id}").status_code == 503
        deleting.erase(api, path_of(SESSION))

    finish_due(soon(5))

    assert deleting.totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletion__while_another_repair_goes_on__is_done_afterwards(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "repair_lease", lambda project_id: repair_lease(project_id, wait_seconds=0))
    with repair_lease(project.pk):
        answer = api.delete(f"/api/llm/requests/{stored[0].record.request_id}")
        assert finish_due(soon(1)) == 0

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "repair_busy"
    assert finish_due(soon(5)) == 1


def test_deletion__when_nothing_can_arrive_any_more__forgets_the_id_and_stays_as_a_record(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    deleting.erase(api, path_of(SESSION))

    finish_due(soon(8 * 24 * 60))

    row = Deletion.objects.get()
    assert (row.state, row.subject, row.look_at) == (DeletionState.CLOSED, "", None)
    assert row.subject_hash
    assert row.requested_by
    assert finish_due(soon(9 * 24 * 60)) == 0


def test_store_away__is_503_and_nothing_is_promised(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any, **options: Any) -> None:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "query", away)
        answer = api.delete(path_of(SESSION))

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "analytics_unavailable"
    assert not Deletion.objects.exists()
