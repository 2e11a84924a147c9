from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from analytics.models import TraceDestination, TraceDestinationStatus
from analytics.trace_export.destinations import DESTINATIONS, headers_of
from core.models import AuditEntry, Project
from tests.console.conftest import sent, shown, text_of
from tests.factories.core import make_project
from tests.fakes.collector import Reply, collector
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/admin/trace-export/"
SECRET = "Bearer lf-0123456789abcdef"
FIELDS = {"endpoint": "http://127.0.0.1:9", "sampling_ratio": "0.5", "enabled": "on", "action": "save"}


@pytest.fixture(autouse=True)
def private_addresses(settings: Settings) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = True


def make(project: Project, **values: Any) -> TraceDestination:
    given = {"name": "Langfuse", "endpoint": "http://127.0.0.1:9", "headers": {"authorization": SECRET}, **values}
    return DESTINATIONS.create(project.pk, given)


def address(project: Project, row: TraceDestination) -> str:
    return f"{PATH}?project={project.pk}&destination={row.pk}"


def test_page__failing_destination__shows_its_status_and_no_secret(administrator: Client, project: Project) -> None:
    row = make(project)
    TraceDestinationStatus.objects.create(
        destination=row, host="a", waiting_spans=12, sent_spans=3400, dropped_spans=5, rejected_spans=6,
        last_error="The collector answered 401.", last_error_at=datetime.now(UTC),
    )  # fmt: skip
    text = shown(administrator, project, PATH, destination=row.pk)

    assert "http://127.0.0.1:9/v1/traces" in text
    assert "failing" in text
    assert "The collector answered 401." in text
    assert "3,400" in text
    assert "authorization: ****" in text
    assert "0123456789" not in text


def test_form__administrator__makes_changes_and_removes(administrator: Client, project: Project) -> None:
    given = {**FIELDS, "name": "Langfuse", "headers": f"Authorization: {SECRET}\n\nx-team: a"}
    assert sent(administrator, project, PATH, **given).status_code == 302
    row = DESTINATIONS.rows(project.pk).get()
    assert headers_of(row) == {"authorization": SECRET, "x-team": "a"}
    assert (row.sampling_ratio, row.enabled, row.include_content) == (0.5, True, False)

    changed = {**FIELDS, "name": "Langfuse", "headers": "authorization: ****", "include_content": "on", "enabled": ""}
    assert administrator.post(address(project, row), changed).status_code == 302
    row.refresh_from_db()
    assert headers_of(row) == {"authorization": SECRET}
    assert (row.enabled, row.include_content) == (False, True)

    assert administrator.post(address(project, row), {"action": "remove"}).status_code == 302
    assert not DESTINATIONS.rows(project.pk).exists()
    entries = AuditEntry.objects.filter(object_kind="trace destination").order_by("id")
    assert [entry.action for entry in entries] == ["created", "changed", "deleted"]


@tabled
def test_form__invalid__says_why(administrator: Client, project: Project, given: dict[str, str], problem: str) -> None:
    make(project)
    text = text_of(sent(administrator, project, PATH, **{"name": "new", **FIELDS, **given}))

    assert problem in text
    assert DESTINATIONS.rows(project.pk).count() == 1


def test_form__three_destinations__is_not_offered_and_refused(administrator: Client, project: Project) -> None:
    for name in ("a", "b", "c"):
        make(project, name=name)

    assert 'name="endpoint"' not in shown(administrator, project, PATH)
    assert sent(administrator, project, PATH, name="d", **FIELDS).status_code == 200
    assert DESTINATIONS.rows(project.pk).count() == 3


@tabled
def test_button__test__says_what_the_collector_said(
    administrator: Client, project: Project, reply: Reply, said: str
) -> None:
    with collector() as running:
        running.usual = reply
        row = make(project, endpoint=running.url)
        answer = administrator.post(address(project, row), {"action": "test"}, follow=True)

    text = text_of(answer)
    assert said in text
    assert "0123456789" not in text
    assert len(running.posts) == 1


@pytest.mark.parametrize("destination", ["none", "00000000-0000-4000-8000-000000000000"])
def test_page__destination_that_is_not_there__404(administrator: Client, project: Project, destination: str) -> None:
    assert administrator.get(PATH, {"project": str(project.pk), "destination": destination}).status_code == 404


def test_page__destination_of_another_project__404(administrator: Client, project: Project) -> None:
    row = make(make_project())
    assert administrator.get(address(project, row)).status_code == 404
