from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from analytics.clickhouse import client as store_client
from analytics.deletion.services import delete_request
from analytics.discussions.services import add_comment, assign
from analytics.discussions.subject import subject_request
from analytics.errors import AnalyticsUnavailableError
from analytics.models import Assignment, Comment
from core.models import Project
from core.roles import Role
from tests.console.pages import shown, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project, make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
SECRET = "the price was <wrong>"


@pytest.fixture
def request_id(project: Project, spool: Path) -> str:
    entry = make_entry(b'{"messages": []}', b"{}", project_id=str(project.pk), session_id="chat/1")
    store(spool, entry)
    return entry.record.request_id


def signed_in(project: Project, name: str, role: Role = Role.EDITOR) -> Client:
    client = Client()
    client.force_login(make_staff(role, project, name=name))
    return client


def address(project: Project, request_id: str) -> str:
    return f"/admin/analytics/requests/{project.pk}/{request_id}/"


@pytest.mark.parametrize("of_session", [False, True])
def test_panel__comment_and_assignment__written_changed_and_shown(
    project: Project, request_id: str, of_session: bool
) -> None:
    path = f"/admin/analytics/sessions/{project.pk}/chat/1" if of_session else address(project, request_id)
    ann = signed_in(project, "ann")

    answer = ann.post(path, {"action": "comment", "text": f"@ann: {SECRET}"})
    ann.post(path, {"action": "assign", "assignee": "ann"})

    assert answer.status_code == 302 and answer["Location"].endswith("#panel-discussion")
    page = text_of(ann.get(path))
    assert "the price was &lt;wrong&gt;" in page and ">@ann</a>" in page
    assert "Assigned to" in page and Assignment.objects.get().state == "open"
    row = Comment.objects.get()
    ann.post(path, {"action": "comment-change", "comment": str(row.pk), "text": "Mended."})
    ann.post(path, {"action": "assignment-done"})
    page = text_of(ann.get(path))
    assert "Mended." in page and "changed" in page and "Open again" in page
    ann.post(path, {"action": "assignment-open"})
    assert Assignment.objects.get().state == "open"
    ann.post(path, {"action": "assignment-delete"})
    ann.post(path, {"action": "comment-delete", "comment": str(row.pk)})
    assert not Assignment.objects.exists() and not Comment.objects.exists()


def test_panel__bad_input__is_said_in_place_and_changes_nothing(project: Project, request_id: str) -> None:
    path, ann, ben = address(project, request_id), signed_in(project, "ann"), signed_in(project, "ben")
    ann.post(path, {"action": "comment", "text": "Of ann."})
    row = Comment.objects.get()

    too_long = text_of(ben.post(path, {"action": "comment", "text": "x" * 10_001}))
    stolen = text_of(ben.post(path, {"action": "comment-change", "comment": str(row.pk), "text": "No."}, follow=True))
    gone = text_of(ben.post(path, {"action": "comment-delete", "comment": "none"}, follow=True))
    nobody = text_of(ben.post(path, {"action": "assign", "assignee": "nobody"}, follow=True))
    unassigned = text_of(ben.post(path, {"action": "assignment-done"}, follow=True))

    assert "at most 10000 characters" in too_long and "x" * 10_001 in too_long
    assert "Only the author and administrators" in stolen
    assert "There is no such comment" in gone
    assert "Nobody of this name is a member" in nobody
    assert "There is no such assignment" in unassigned
    assert Comment.objects.get().text == "Of ann."


def test_panel__by_role__no_text_without_content_and_no_form_without_the_right_to_edit(
    project: Project, request_id: str
) -> None:
    path = address(project, request_id)
    signed_in(project, "ann").post(path, {"action": "comment", "text": SECRET})
    blind = signed_in(project, "blind", Role.READER_WITHOUT_CONTENT)
    reader = signed_in(project, "reader", Role.READER)

    assert "the price was" not in text_of(blind.get(path))
    page = text_of(reader.get(path))
    assert "the price was" in page and "Add comment" not in page and "comment-change" not in page
    assert reader.post(path, {"action": "comment", "text": "x"}).status_code == 403
    assert reader.post(path, {"action": "assign", "assignee": "reader"}).status_code == 403
    assert "the price was" not in shown(blind, "/admin/assignments/", project, assignee="*")


def test_assignments__mine_at_first__others_by_filter_with_links(project: Project, request_id: str) -> None:
    subject = subject_request(UUID(request_id))
    ann = signed_in(project, "ann", Role.READER)
    signed_in(project, "ben")
    assign(project_id=project.pk, subject=subject, assignee="ben", actor="user:ann")
    add_comment(project_id=project.pk, subject=subject, text="For @ann to know", actor="user:ben")

    mine = shown(ann, "/admin/assignments/", project)
    everybody = shown(ann, "/admin/assignments/", project, assignee="*")
    done = shown(ann, "/admin/assignments/", project, assignee="ben", state="done")

    assert "Nothing is assigned." in mine and "For @ann to know" in mine
    assert f"{address(project, request_id)}?" in everybody and "#panel-discussion" in everybody
    assert "Nothing is assigned." in done


def test_short_address__member__leads_to_the_request_of_any_project_that_may_be_read(
    project: Project, request_id: str
) -> None:
    client = Client()
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, project, make_project()))
    page = unescape(text_of(client.get(address(project, request_id))))

    answer = client.get(f"/admin/r/{request_id}", follow=True)

    assert answer.redirect_chain[-1] == (address(project, request_id), 302) or answer.redirect_chain[-2][0] == address(
        project, request_id
    )
    assert answer.status_code == 200
    assert f"http://testserver/admin/r/{request_id}</span>" in page
    nobody = Client().get(f"/admin/r/{request_id}")
    assert nobody.status_code == 302 and "/login/" in nobody["Location"]


def test_short_address__of_another_project_or_erased__404_in_the_frame_with_a_sentence(
    project: Project, request_id: str
) -> None:
    boss = signed_in(project, "boss", Role.ADMINISTRATOR)
    stranger = signed_in(make_project(), "stranger", Role.ADMINISTRATOR)
    delete_request(project.pk, UUID(request_id), actor="user:boss")

    answers: list[Any] = [client.get(f"/admin/r/{request_id}", follow=True) for client in (boss, stranger)]
    answers.append(boss.get(f"/admin/r/{uuid4()}", follow=True))

    pages = [b"".join(one.streaming_content).decode() for one in answers]
    assert [one.status_code for one in answers] == [404] * 3
    assert "This request was deleted on" in pages[0]
    assert all("There is no request of this id in the projects that you may read." in page for page in pages[1:])
    assert all('id="navigation"' in page for page in pages)


def test_short_address__store_away__says_so_and_is_no_404(
    project: Project, request_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(project, "ann")

    def away(*_: object, **__: object) -> None:
        raise AnalyticsUnavailableError("The request log does not answer.")

    monkeypatch.setattr(store_client, "query", away)
    answer: Any = client.get(f"/admin/r/{request_id}", follow=True)

    assert answer.status_code == 503
    assert "The request log does not answer." in b"".join(answer.streaming_content).decode()
