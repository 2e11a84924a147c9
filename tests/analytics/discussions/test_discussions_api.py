"""Comments and assignments over the API: who may write and read them, and that they go with what they are about."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.deletion.services import finish_due
from analytics.discussions.mentions import pieces_of
from analytics.models import Assignment, Comment
from core.models import AuditEntry, Project
from core.roles import Role
from gateway.retention import expire_judgements
from gateway.selectors import project_settings
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project, make_staff
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
COMMENTS, ASSIGNMENTS = "/api/llm/comments", "/api/llm/assignments"
TEXT = "The answer names a price that we never had."


def person_of(project: Project, name: str, role: Role = Role.EDITOR) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(make_staff(role, project, name=name))
    client.credentials(HTTP_X_PROJECT_ID=str(project.pk))
    return client


@pytest.fixture
def request_id(project: Project, spool: Path) -> str:
    """The id of a stored request of the session `chat/1`."""
    entry = make_entry(project_id=str(project.pk), session_id="chat/1")
    store(spool, entry)
    return entry.record.request_id


def comment(client: APIClient, text: str = TEXT, **about: str) -> Any:
    return client.post(COMMENTS, {"text": text, **about}, format="json")


def texts(client: APIClient, **query: str) -> list[str]:
    return [row["text"] for row in client.get(COMMENTS, query).json()["results"]]


def test_comments__of_a_request_and_a_session__are_listed_apart_and_name_members(
    project: Project, request_id: str
) -> None:
    ann = person_of(project, "ann")
    make_staff(Role.READER, make_project(), name="stranger")

    first = comment(ann, "Look, @ann and @stranger: mail@ann.example is none.", request_id=request_id)
    comment(ann, "Second.", request_id=request_id)
    comment(ann, "Of the session, @ann.", session_id="chat/1")

    assert first.status_code == 201
    body = first.json()
    assert (body["request_id"], body["session_id"]) == (request_id, None)
    assert (body["created_by"], body["mentions"], body["edited_at"]) == ("user:ann", ["ann"], None)
    assert texts(ann, request_id=request_id) == [body["text"], "Second."]
    assert texts(ann, session_id="chat/1") == ["Of the session, @ann."]
    assert texts(ann, mentions="ann") == ["Of the session, @ann.", body["text"]]
    assert texts(ann, created_by="user:ben") == []


@tabled
def test_comment__body_that_is_wrong__names_the_field(api: APIClient, body: dict[str, Any], field: str) -> None:
    answer = api.post(COMMENTS, body, format="json")

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


def test_comment__of_what_is_not_there__404(api: APIClient, request_id: str) -> None:
    assert comment(api, request_id=str(uuid4())).json()["error"]["code"] == "request_not_found"
    assert comment(api, session_id="chat").json()["error"]["code"] == "session_not_found"


def test_comment__changed__by_its_author_and_administrators_alone(project: Project, request_id: str) -> None:
    ann, ben = person_of(project, "ann"), person_of(project, "ben")
    boss = person_of(project, "boss", Role.ADMINISTRATOR)
    path = f"{COMMENTS}/{comment(ann, request_id=request_id).json()['id']}"

    refused = [ben.patch(path, {"text": "No."}, format="json"), ben.delete(path)]
    own = ann.patch(path, {"text": "Mended, @ben."}, format="json")
    of_boss = boss.patch(path, {"text": "Mended again."}, format="json")

    assert [(one.status_code, one.json()["error"]["code"]) for one in refused] == [(403, "not_your_comment")] * 2
    assert (own.json()["text"], own.json()["mentions"], own.json()["edited_by"]) == (
        "Mended, @ben.",
        ["ben"],
        "user:ann",
    )
    assert (of_boss.json()["created_by"], of_boss.json()["edited_by"]) == ("user:ann", "user:boss")
    assert boss.delete(path).status_code == 204
    assert texts(ann, request_id=request_id) == []
    assert ann.delete(path).json()["error"]["code"] == "comment_not_found"


def test_comment__reader__reads_and_does_not_write__without_content_reads_no_text(
    project: Project, request_id: str
) -> None:
    comment(person_of(project, "ann"), "Ask @ann.", request_id=request_id)
    reader = person_of(project, "reader", Role.READER)
    blind = person_of(project, "blind", Role.READER_WITHOUT_CONTENT)

    (shown,) = blind.get(COMMENTS, {"request_id": request_id}).json()["results"]

    assert texts(reader, request_id=request_id) == ["Ask @ann."]
    assert (shown["text"], shown["mentions"], shown["created_by"]) == (None, None, "user:ann")
    assert blind.get(COMMENTS, {"mentions": "ann"}).json()["results"] == []
    assert comment(reader, request_id=request_id).status_code == 403
    assert reader.post(ASSIGNMENTS, {"request_id": request_id, "assignee": "reader"}).status_code == 403


def test_assignment__given_done_and_given_again__is_one_row(project: Project, request_id: str) -> None:
    ann = person_of(project, "ann")
    make_staff(Role.READER, project, name="ben")
    body = {"request_id": request_id, "assignee": "ben"}

    first = ann.post(ASSIGNMENTS, body, format="json")
    path = f"{ASSIGNMENTS}/{first.json()['id']}"
    done = ann.patch(path, {"state": "done"}, format="json").json()
    found = ann.get(ASSIGNMENTS, {"assignee": "ben", "state": "done"}).json()["results"]
    again = ann.post(ASSIGNMENTS, {**body, "assignee": "ann"}, format="json")

    assert (first.status_code, again.status_code) == (201, 200)
    assert (done["state"], done["done_by"], done["assignee"]) == ("done", "user:ann", "ben")
    assert [row["id"] for row in found] == [first.json()["id"]]
    assert again.json() == {**again.json(), "id": first.json()["id"], "assignee": "ann", "state": "open"}
    assert (again.json()["done_by"], again.json()["done_at"]) == ("", None)
    assert ann.delete(path).status_code == 204
    assert ann.get(ASSIGNMENTS, {"request_id": request_id}).json()["count"] == 0


def test_assignment__to_nobody_of_the_project__names_the_field(project: Project, request_id: str) -> None:
    ann = person_of(project, "ann")
    make_staff(Role.EDITOR, make_project(), name="stranger")

    answers = [
        ann.post(ASSIGNMENTS, {"request_id": request_id, "assignee": name}, format="json")
        for name in ("stranger", "nobody", "")
    ]

    assert [answer.status_code for answer in answers] == [400] * 3
    assert all("assignee" in answer.json()["error"]["details"] for answer in answers)


def test_discussion__in_the_audit_log__without_texts_and_ids(project: Project, request_id: str) -> None:
    ann = person_of(project, "ann")
    made = comment(ann, request_id=request_id).json()
    ann.patch(f"{COMMENTS}/{made['id']}", {"text": "Other words."}, format="json")
    ann.post(ASSIGNMENTS, {"request_id": request_id, "assignee": "ann"}, format="json")
    ann.delete(f"{COMMENTS}/{made['id']}")

    entries = AuditEntry.objects.filter(project=project).order_by("pk")

    assert [(one.operation, one.object_kind, one.action) for one in entries] == [
        ("addComment", "comment", "created"),
        ("changeComment", "comment", "changed"),
        ("assign", "assignment", "created"),
        ("deleteComment", "comment", "deleted"),
    ]
    kept = str(list(entries.values()))
    assert request_id not in kept and TEXT not in kept and "Other words." not in kept


def test_discussion__request_deleted__goes_with_it(api: APIClient, project: Project, request_id: str) -> None:
    comment(api, request_id=request_id)
    make_staff(Role.READER, project, name="ben")
    api.post(ASSIGNMENTS, {"request_id": request_id, "assignee": "ben"}, format="json")
    comment(api, session_id="chat/1")

    assert api.delete(f"/api/llm/requests/{request_id}").status_code == 204

    assert [row.kind for row in Comment.objects.all()] == ["session"]
    assert not Assignment.objects.exists()


def test_discussion__session_deleted__goes_at_once_with_those_of_its_requests(
    api: APIClient, project: Project, spool: Path, request_id: str
) -> None:
    other = make_entry(project_id=str(project.pk), session_id="other")
    store(spool, other)
    make_staff(Role.READER, project, name="ben")
    for about in ({"request_id": request_id}, {"session_id": "chat/1"}, {"request_id": other.record.request_id}):
        assert comment(api, **about).status_code == 201
        assert api.post(ASSIGNMENTS, {**about, "assignee": "ben"}, format="json").status_code == 201

    assert api.delete("/api/llm/sessions/chat/1").status_code == 204

    for model in (Comment, Assignment):
        assert [row.subject for row in model.objects.all()] == [other.record.request_id]
    finish_due()
    assert Comment.objects.count() == 1


def test_discussion__older_than_retention__expires_by_the_time_of_the_request(
    api: APIClient, project: Project, spool: Path
) -> None:
    old = int((timezone.now() - timedelta(days=20)).timestamp() * 1e6)
    entry = make_entry(project_id=str(project.pk), session_id="long", ts=old)
    store(spool, entry)
    assert comment(api, request_id=entry.record.request_id).status_code == 201
    assert comment(api, session_id="long").status_code == 201

    days = project_settings(project.pk).retention_days
    expire_judgements(timezone.now() + timedelta(days=days - 10))

    assert [row.kind for row in Comment.objects.all()] == ["session"]
    expire_judgements(timezone.now() + timedelta(days=days + 1))
    assert not Comment.objects.exists()


def test_mentions__in_a_sentence__are_pieces_and_the_rest_stays_text() -> None:
    text = "Ask @ann.b. Not x@ann.b, nor @other, but @ann.b"

    pieces = list(pieces_of(text, ["ann.b"]))

    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, name in pieces if name] == ["@ann.b", "@ann.b"]
