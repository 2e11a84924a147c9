from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from rest_framework.test import APIClient

from agent.models import Message
from agent.models import Role as Speaker
from agent.services import create_conversation
from analytics.discussions.services import add_comment, assign
from analytics.discussions.subject import subject_request
from analytics.evaluators.services import NewVersion, create_evaluator
from analytics.models import Chart, Dashboard, ListPage, TraceDestination
from analytics.queries.requests import get_request_time
from analytics.saved_views import save_view
from core.members.invitations import invite
from core.models import Membership, Project, Team, TeamMember
from core.roles import Role
from gateway.evaluations.services import NewOnlineEvaluation, create_online_evaluation
from gateway.models import EndUserLimit, Experiment, ExperimentAnswer, ExperimentItem, ModelGroupRow
from gateway.services import replace_settings
from gateway.tables.figure_alert import AlertChannel, FigureAlert
from prompts.labels import set_label
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import make_key, make_staff
from tests.factories.datasets import make_dataset
from tests.factories.prompts import make_config
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.factories.scores import make_score
from tests.kept import Keep

PROJECT_ID = UUID("00000000-0000-4000-8000-00000000c0de")
REQUEST_ID = uuid7(1_790_000_000_000_000)
ALERT_QUERY = {"figure": "total_cost_usd", "filters": {}}

_SCHEMATHESIS = "schemathesis.pytest.plugin"


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin(_SCHEMATHESIS):
        config.pluginmanager.import_plugin(_SCHEMATHESIS)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Gives every operation of schemathesis its own node id, for `--durations` and `--last-failed`: the plugin puts it
    only into the test's name."""
    if item.parent is not None and hasattr(item, "operation_label"):
        item._id = item.parent.id.child(item.name)


@dataclass(frozen=True)
class Populated:
    headers: dict[str, str]
    known: dict[str, Any]


@pytest.fixture(scope="module")
def rows(keep: Keep) -> Populated:
    def make(spool: Path) -> Populated:
        store_requests(spool)
        return populate()

    return keep(make)


@pytest.fixture
def populated(rows: Populated, db: None) -> Populated:
    cache.clear()  # It holds the limits of trials, which the tests of this folder share, as they share the project.
    return replace(rows, known=dict(rows.known))


@pytest.fixture
def caller(populated: Populated) -> APIClient:
    """A client with the key of the populated project."""
    client = APIClient()
    client.credentials(
        HTTP_AUTHORIZATION=populated.headers["Authorization"], HTTP_X_PROJECT_ID=populated.headers["X-Project-Id"]
    )
    return client


def store_requests(spool: Path) -> None:
    body = b'{"messages": [{"role": "user", "content": "a question"}]}'
    requests = [
        make_entry(body, b"{}", project_id=str(PROJECT_ID), session_id="session", user_id="user"),
        make_entry(project_id=str(PROJECT_ID), session_id="session", error_type="api_error", status_code=500),
        make_entry(body, b"{}", project_id=str(PROJECT_ID), request_id=REQUEST_ID, session_id="other"),
    ]
    store(spool, *requests)


def populate() -> Populated:
    project = Project.objects.create(pk=PROJECT_ID, name="described")
    row, key = make_key(project)
    owner = f"key:{row.pk}"
    return Populated(
        headers={"Authorization": f"Bearer {key}", "X-Project-Id": str(project.pk)},
        known={
            "project_id": str(project.pk),
            "key_id": row.pk,
            "request_id": REQUEST_ID,
            "trace_id": REQUEST_ID.replace("-", ""),
            "session_id": "session",
            "user_id": "user",
            "provider": "openai",
            "name": "openai",
            "model": "gpt-4o-mini",
            **_people(project),
            **_prompts(project),
            **_configuration(project),
            **_alerts(project),
            **_reviews(project),
            **_dataset(project),
            **_experiment(project),
            **_evaluator(project),
            **_discussion(project, actor=owner),
            **_pages(project, owner=owner),
        },
    )


def _evaluator(project: Project) -> dict[str, Any]:
    first = NewVersion({"value": "a"})
    row = create_evaluator(project_id=project.pk, name="greets", kind="contains", first=first, actor="test")
    new = NewOnlineEvaluation(evaluator_id=row.pk, rate=0.1)
    evaluation = create_online_evaluation(project_id=project.pk, new=new, actor="test")
    return {"evaluator_id": str(row.pk), "evaluation_id": str(evaluation.pk)}


def _people(project: Project) -> dict[str, Any]:
    member = Membership.objects.create(project=project, user=make_staff(name="described"), role=Role.READER)
    team = Team.objects.create(project=project, name="Search")
    TeamMember.objects.create(team=team, membership=member)
    user = EndUserLimit.objects.create(project=project, user_id="ann", rate_limit_rpm=60)
    invited, _ = invite(project_id=project.pk, email="guest@example.com", role=Role.READER, actor="test")
    return {"member_id": member.pk, "invitation_id": invited.pk, "team_id": team.pk, "limit_id": user.pk}


def _prompts(project: Project) -> dict[str, Any]:
    config = make_config(project, versions=3)
    versions = list(config.versions.order_by("number"))
    set_label(
        project_id=project.pk, config_id=config.pk, name="production", number=1, actor="test", is_administrator=True
    )
    return {
        "config_id": str(config.pk),
        "version_id": str(versions[0].pk),
        "other_id": str(versions[-1].pk),
        "label": "production",
        "rollout_id": str(make_rollout(config).pk),
    }


def _configuration(project: Project) -> dict[str, Any]:
    replace_settings(project_id=project.pk, values={"retry_enabled": False}, actor="test")
    ModelGroupRow.objects.create(
        project=project, name="fast", strategy="ordered", members=[{"model": "gpt-4o-mini", "weight": 1}]
    )
    destination = TraceDestination.objects.create(
        project=project, name="local", endpoint="http://127.0.0.1:9/v1/traces"
    )
    return {
        "change_id": project.settings_changes.latest("id").pk,
        "group_name": "fast",
        "destination_id": str(destination.pk),
    }


def _alerts(project: Project) -> dict[str, Any]:
    channel = AlertChannel.objects.create(project=project, name="on call", kind="email", emails=["a@x.example"])
    alert = FigureAlert.objects.create(
        project=project, name="spend", query=ALERT_QUERY, condition="above", threshold=5, window_minutes=60
    )
    alert.channels.add(channel)
    return {"channel_id": str(channel.pk), "alert_id": str(alert.pk)}


def _reviews(project: Project) -> dict[str, Any]:
    make_score(project, request_id=REQUEST_ID)
    queue = make_queue(project, request_ids=[REQUEST_ID])
    queue.items.update(ts=get_request_time(project.pk, UUID(REQUEST_ID)) or queue.created_at)
    return {"queue_id": str(queue.pk), "item_id": str(queue.items.get().pk)}


def _dataset(project: Project) -> dict[str, Any]:
    dataset = make_dataset(project)
    return {"dataset_id": str(dataset.pk), "dataset_item_id": str(dataset.items.all()[0].item_id)}


def _experiment(project: Project) -> dict[str, Any]:
    experiment = Experiment.objects.create(
        project=project, item_limit=1, candidates=[{"label": "A"}, {"label": "B", "application": "agent"}]
    )
    past = ExperimentItem.objects.create(
        experiment=experiment, position=1, request_id=REQUEST_ID, requested_at=experiment.created_at
    )
    ExperimentAnswer.objects.bulk_create(
        [ExperimentAnswer(item=past, candidate=0), ExperimentAnswer(item=past, candidate=1, state="awaited")]
    )
    return {"experiment_id": str(experiment.pk), "position": past.position}


def _discussion(project: Project, *, actor: str) -> dict[str, Any]:
    conversation = create_conversation(project_id=project.pk, title="described", actor="test")
    Message.objects.create(conversation=conversation, sequence=1, role=Speaker.USER, content="a question")
    subject = subject_request(UUID(REQUEST_ID))
    comment = add_comment(project_id=project.pk, subject=subject, actor=actor, text="Look at this, @described.")
    assignment, _ = assign(project_id=project.pk, subject=subject, actor=actor, assignee="described")
    return {
        "conversation_id": str(conversation.pk),
        "comment_id": str(comment.pk),
        "assignment_id": str(assignment.pk),
    }


def _pages(project: Project, *, owner: str) -> dict[str, Any]:
    view, _ = save_view(
        project_id=project.pk, owner=owner, page=ListPage.REQUESTS, name="slow", query="sort=-latency_ms"
    )
    dashboard = Dashboard.objects.create(project=project, owner=owner, name="team", is_shared=True)
    chart = Chart.objects.create(
        dashboard=dashboard, position=0, title="Errors", kind="line", figures=["error_count"], filters={"model": "m"}
    )
    return {"view_id": str(view.pk), "dashboard_id": str(dashboard.pk), "chart_id": str(chart.pk)}


@pytest.fixture
def one_connection() -> Iterator[None]:
    """A request would close the test's database connection, as in a server."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def offline(settings: Any) -> None:
    settings.PRICING_CATALOGS = {"catalog_a": "http://127.0.0.1:9/a", "catalog_b": "http://127.0.0.1:9/b"}
