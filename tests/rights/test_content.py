from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from agent.models import Message
from agent.models import Role as Speaker
from agent.services import create_conversation
from analytics.discussions.services import add_comment
from analytics.discussions.subject import subject_session
from analytics.models import Feedback, Score
from analytics.scores.services import record_feedback
from core.models import Membership, Project
from core.roles import Role
from tests.analytics.telemetry.sending import Sender, log, span
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.scores import make_score
from tests.rights.conftest import signed_in

SECRET_WORD = "marzipan"
REQUEST_ID = uuid7(1_790_000_000_000_000)


@pytest.fixture
def project(clickhouse: None, db: None, tmp_path: Any) -> Project:
    project = make_project()
    question = f'{{"messages": [{{"role": "user", "content": "{SECRET_WORD}"}}]}}'.encode()
    answer = f'{{"choices": [{{"message": {{"role": "assistant", "content": "{SECRET_WORD}"}}}}]}}'.encode()
    failed = {
        "error_type": "api_error",
        "error_code": "provider_error",
        "error_message": f"No {SECRET_WORD}",
        "status_code": 500,
    }
    entry = make_entry(
        question,
        answer,
        project_id=str(project.pk),
        session_id="session",
        request_id=REQUEST_ID,
        attributes={"contract_violation": SECRET_WORD},
        **failed,
    )
    store(tmp_path, entry)
    make_score(project, request_id=REQUEST_ID, reason=SECRET_WORD)
    given: dict[str, Any] = {"session_id": "session", "score": 5, "text": SECRET_WORD, "actor": "test"}
    record_feedback(project_id=project.pk, request_id=UUID(REQUEST_ID), **given)
    add_comment(project_id=project.pk, subject=subject_session("session"), text=SECRET_WORD, actor="user:ann")
    sender = Sender(make_key(project)[1])
    named = {"gen_ai.session_id": "session", "gen_ai.prompt": SECRET_WORD}
    assert sender.traces(span(1, named)).status_code == 200
    assert sender.logs(log(1, named)).status_code == 200
    conversation = create_conversation(project_id=project.pk, title=SECRET_WORD, actor="test")
    Message.objects.create(conversation=conversation, sequence=1, role=Speaker.USER, content=SECRET_WORD)
    return project


def answers(project: Project) -> list[str]:
    feedback = Feedback.objects.get(project=project).pk
    score = Score.objects.get(project=project).pk
    return [
        "/api/llm/requests",
        f"/api/llm/requests/{REQUEST_ID}",
        "/api/llm/sessions/session",
        "/api/llm/sessions/session/requests",
        "/api/llm/sessions/session/feedback",
        "/api/llm/scores",
        "/api/llm/comments",
        "/api/llm/comments?session_id=session",
        f"/api/llm/scores/request/{REQUEST_ID}",
        f"/api/projects/{project.pk}/llm/sessions/session/telemetry",
        f"/admin/analytics/requests/?project={project.pk}",
        f"/admin/analytics/requests/{project.pk}/{REQUEST_ID}/",
        "/api/llm/sessions/session/timeline",
        f"/api/llm/traces/{'01' * 16}",
        f"/admin/analytics/sessions/{project.pk}/session",
        "/admin/analytics/feedback/",
        f"/admin/analytics/feedback/{feedback}/change/",
        f"/admin/analytics/score/{score}/change/",
    ]


def content_of(answer: Any) -> str:
    return (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()


CONTENT_ALONE = [
    "/api/llm/requests/export",
    "/api/agent/conversations",
    "/admin/agent/conversation/",
    "/api/llm/sessions/session/transcript",
    f"/api/llm/requests/{REQUEST_ID}/conversation",
]


def get_page(client: Client, project: Project, path: str) -> Any:
    return client.get(path, headers={"X-Project-Id": str(project.pk)})


def test_answers__reader__have_the_texts(project: Project) -> None:
    client = signed_in(make_staff(Role.READER, project))
    for path in answers(project):
        answer = get_page(client, project, path)
        assert answer.status_code == 200, path
        assert SECRET_WORD in content_of(answer), path
    for path in CONTENT_ALONE[1:]:
        assert SECRET_WORD in get_page(client, project, path).content.decode(), path
    found = client.post(
        "/api/llm/search",
        {"project_id": str(project.pk), "query": SECRET_WORD},
        content_type="application/json",
        headers={"X-Project-Id": str(project.pk)},
    )
    assert found.json()["count"] == 1


def test_answers__reader_without_content__have_all_but_the_texts(project: Project) -> None:
    client = signed_in(make_staff(Role.READER_WITHOUT_CONTENT, project))
    for path in answers(project):
        answer = get_page(client, project, path)
        assert answer.status_code == 200, path
        assert SECRET_WORD not in content_of(answer), path
    for path in CONTENT_ALONE:
        assert get_page(client, project, path).status_code == 403, path
    shown = get_page(client, project, f"/api/llm/requests/{REQUEST_ID}").json()
    assert shown["error"] == {"type": "api_error", "code": "provider_error", "message": None}
    hidden = ("prompt_preview", "completion_preview", "attributes", "request", "response")
    assert [shown[name] for name in hidden] == [None] * len(hidden)
    assert shown["latency_ms"] is not None and shown["content_logged"] is True
    spans = get_page(client, project, f"/api/projects/{project.pk}/llm/sessions/session/telemetry").json()["spans"]
    # One is the application's, the other the gateway's own of the request.
    assert [(item["attributes"], item["status_message"]) for item in spans] == [(None, None)] * 2


def test_lists__content_in_one_of_two_projects__text_of_that_one_alone(project: Project) -> None:
    other = make_project()
    record_feedback(project_id=other.pk, session_id="s", score=1, text="nougat", actor="test")
    user = make_staff(Role.READER, other)
    Membership.objects.create(user=user, project=project, role=Role.READER_WITHOUT_CONTENT)

    shown = signed_in(user).get("/admin/analytics/feedback/").content.decode()

    assert "nougat" in shown
    assert SECRET_WORD not in shown
