"""A project with one row of everything, so that calls find something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from agent.models import Message
from agent.models import Role as Speaker
from agent.services import create_conversation
from analytics.clickhouse import client as store_client
from analytics.discussions.services import add_comment, assign
from analytics.discussions.subject import subject_request
from analytics.models import Chart, Dashboard, ListPage, TraceDestination
from analytics.saved_views import save_view
from core.models import Membership, Project, Team, TeamMember
from core.roles import Role
from gateway.models import EndUserLimit, GatewaySettings, ModelGroupRow, Trial, TrialAnswer, TrialInput
from gateway.services import replace_settings
from gateway.tables.figure_alert import AlertChannel, FigureAlert
from prompts.labels import set_label
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import make_key, make_staff
from tests.factories.prompts import make_config
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.factories.scores import make_score

PROJECT_ID = UUID("00000000-0000-4000-8000-00000000c0de")
REQUEST_ID = uuid7(1_790_000_000_000_000)
ALERT_QUERY = {"figure": "total_cost_usd", "filters": {}}

_SCHEMATHESIS = "schemathesis.pytest.plugin"


def pytest_configure(config: pytest.Config) -> None:
    """Loads the plugin of schemathesis, which other tests do without (`addopts` in pyproject.toml)."""
    if not config.pluginmanager.has_plugin(_SCHEMATHESIS):
        config.pluginmanager.import_plugin(_SCHEMATHESIS)


@dataclass(frozen=True)
class Populated:
    """A project with rows; `known` has an existing value for each name of a path parameter."""

    headers: dict[str, str]
    known: dict[str, Any]


@contextmanager
def requests_in_store(folder: Path) -> Iterator[None]:
    """The requests that `populated` speaks of are in the store meanwhile; `folder` is for a spool."""
    body = b'{"messages": [{"role": "user", "content": "a question"}]}'
    requests = [
        make_entry(body, b"{}", project_id=str(PROJECT_ID), session_id="session", user_id="user"),
        make_entry(project_id=str(PROJECT_ID), session_id="session", error_type="api_error", status_code=500),
        make_entry(project_id=str(PROJECT_ID), request_id=REQUEST_ID, session_id="other"),
    ]
    store(folder, *requests)
    yield
    tables = store_client.execute(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
        " AND name != 'schema_migrations' AND total_rows > 0"
    )
    for (table,) in tables:
        store_client.execute(f"TRUNCATE TABLE `{table}`")


@pytest.fixture(scope="module")
def stored_requests(clickhouse_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with requests_in_store(tmp_path_factory.mktemp("spool")):
        yield


def _trial_input(project: Project) -> TrialInput:
    """Returns the one input of a trial of two candidates."""
    trial = Trial.objects.create(project=project, input_limit=1, candidates=[{"label": "A"}, {"label": "B"}])
    past = TrialInput.objects.create(trial=trial, position=1, request_id=REQUEST_ID, requested_at=trial.created_at)
    TrialAnswer.objects.bulk_create([TrialAnswer(input=past, candidate=index) for index in range(2)])
    return past


def _alert(project: Project) -> FigureAlert:
    channel = AlertChannel.objects.create(project=project, name="on call", kind="email", emails=["a@x.example"])
    alert = FigureAlert.objects.create(
        project=project, name="spend", query=ALERT_QUERY, condition="above", threshold=5, window_minutes=60
    )
    alert.channels.add(channel)
    return alert


def _chart(project: Project, *, owner: str) -> Chart:
    dashboard = Dashboard.objects.create(project=project, owner=owner, name="team")
    return Chart.objects.create(
        dashboard=dashboard, position=0, title="Errors", kind="line", figures=["error_count"], filters={"model": "m"}
    )


@pytest.fixture
def populated(db: None, stored_requests: None) -> Populated:
    cache.clear()  # It holds the limits of trials, which the tests of this folder share, as they share the project.
    project = Project.objects.create(pk=PROJECT_ID, name="described")
    row, key = make_key(project)
    member = Membership.objects.create(project=project, user=make_staff(name="described"), role=Role.READER)
    config = make_config(project, versions=3)
    versions = list(config.versions.order_by("number"))
    set_label(
        project_id=project.pk,
        config_id=config.pk,
        name="production",
        number=1,
        actor="test",
        is_administrator=True,
    )
    rollout = make_rollout(config)
    make_score(project, request_id=REQUEST_ID)
    queue = make_queue(project, request_ids=[REQUEST_ID])
    replace_settings(project_id=project.pk, values={"retry_enabled": False}, actor="test")
    change = GatewaySettings.objects.get(project=project).project.settings_changes.latest("id")
    conversation = create_conversation(project_id=project.pk, title="described", actor="test")
    Message.objects.create(conversation=conversation, sequence=1, role=Speaker.USER, content="a question")
    user = EndUserLimit.objects.create(project=project, user_id="ann", rate_limit_rpm=60)
    destination = TraceDestination.objects.create(
        project=project, name="local", endpoint="http://127.0.0.1:9/v1/traces"
    )
    alert = _alert(project)
    ModelGroupRow.objects.create(
        project=project, name="fast", strategy="ordered", members=[{"model": "gpt-4o-mini", "weight": 1}]
    )
    past = _trial_input(project)
    of_request: dict[str, Any] = {
        "project_id": project.pk,
        "subject": subject_request(UUID(REQUEST_ID)),
        "actor": f"key:{row.pk}",
    }
    comment = add_comment(**of_request, text="Look at this, @described.")
    assignment, _ = assign(**of_request, assignee="described")
    view, _ = save_view(
        project_id=project.pk, owner=f"key:{row.pk}", page=ListPage.REQUESTS, name="slow", query="sort=-latency_ms"
    )
    chart = _chart(project, owner=f"key:{row.pk}")
    team = Team.objects.create(project=project, name="Search")
    TeamMember.objects.create(team=team, membership=member)
    return Populated(
        headers={"Authorization": f"Bearer {key}", "X-Project-Id": str(project.pk)},
        known={
            "project_id": str(project.pk),
            "key_id": row.pk,
            "member_id": member.pk,
            "config_id": str(config.pk),
            "version_id": str(versions[0].pk),
            "other_id": str(versions[-1].pk),
            "rollout_id": str(rollout.pk),
            "change_id": change.pk,
            "request_id": REQUEST_ID,
            "channel_id": str(alert.channels.get().pk),
            "alert_id": str(alert.pk),
            "trace_id": REQUEST_ID.replace("-", ""),
            "session_id": "session",
            "conversation_id": str(conversation.pk),
            "queue_id": str(queue.pk),
            "item_id": str(queue.items.get().pk),
            "trial_id": str(past.trial_id),
            "position": past.position,
            "view_id": str(view.pk),
            "dashboard_id": str(chart.dashboard_id),
            "chart_id": str(chart.pk),
            "label": "production",
            "provider": "openai",
            "name": "openai",
            "model": "gpt-4o-mini",
            "group_name": "fast",
            "limit_id": user.pk,
            "team_id": team.pk,
            "comment_id": str(comment.pk),
            "assignment_id": str(assignment.pk),
            "destination_id": str(destination.pk),
        },
    )


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Keeps the test's own database connection open, which a request would close as in a server."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def offline(settings: Any) -> None:
    """Replaces the fetch of price catalogs, so that no network is needed."""
    settings.PRICING_CATALOGS = {"catalog_a": "http://127.0.0.1:9/a", "catalog_b": "http://127.0.0.1:9/b"}
