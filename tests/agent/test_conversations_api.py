from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from agent.models import Conversation, Message, Role
from agent.services import NewMessage, begin_run, create_conversation
from core import roles
from core.models import Project
from tests.factories.core import make_staff
from tests.factories.settings import make_settings

PATH = "/api/agent/conversations"


def messages_path(conversation: Conversation | uuid.UUID) -> str:
    return f"{PATH}/{getattr(conversation, 'pk', conversation)}/messages"


def make_conversation(project: Project, title: str = "", messages: int = 0) -> Conversation:
    row = create_conversation(project_id=project.pk, title=title, actor="test")
    for number in range(1, messages + 1):
        Message.objects.create(conversation=row, sequence=number, role=Role.USER, content=f"message {number}")
    row.last_sequence = messages
    row.save(update_fields=["last_sequence"])
    return row


@pytest.mark.parametrize("body", [{}, {"title": ""}, {"title": None}, {"title": "Costs"}])
def test_create__with_or_without_title__is_201(
    api: APIClient, headers: dict[str, str], project: Project, body: dict[str, Any]
) -> None:
    made = api.post(PATH, body, headers=headers)

    assert made.status_code == 201, made.content
    shown = made.json()
    row = Conversation.objects.get(pk=shown["conversation_id"])
    assert (row.project_id, row.title, shown["title"]) == (project.pk, body.get("title") or "", body.get("title") or "")
    assert shown["created_by"].startswith("key:")
    assert (shown["message_count"], shown["running"]) == (0, False)
    assert shown["created_at"].endswith("Z") and shown["updated_at"].endswith("Z")


def test_create__no_body__is_201(api: APIClient, headers: dict[str, str]) -> None:
    assert api.post(PATH, headers=headers).status_code == 201


def test_list__of_a_project__the_last_used_first_and_nobody_elses(
    api: APIClient, headers: dict[str, str], project: Project, other: Project
) -> None:
    first, second = make_conversation(project, "first"), make_conversation(project, "second")
    make_conversation(other, "foreign")
    begin_run(
        project_id=project.pk, conversation_id=first.pk, message=NewMessage(Role.USER, content="hi"), actor="test"
    )

    shown = api.get(PATH, headers=headers).json()

    assert set(shown) == {"count", "next", "previous", "results"}
    assert [row["conversation_id"] for row in shown["results"]] == [str(first.pk), str(second.pk)]
    assert [(row["message_count"], row["running"]) for row in shown["results"]] == [(1, True), (0, False)]


def test_list__lease_ran_out__is_not_running(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row = make_conversation(project)
    Conversation.objects.filter(pk=row.pk).update(run_id=uuid.uuid4(), run_until=timezone.now() - timedelta(seconds=1))

    assert api.get(PATH, headers=headers).json()["results"][0]["running"] is False


def test_list__limit_and_offset__cut_the_list(api: APIClient, headers: dict[str, str], project: Project) -> None:
    for _ in range(55):
        make_conversation(project)

    whole = api.get(PATH, headers=headers).json()
    assert (whole["count"], len(whole["results"]), whole["previous"]) == (55, 50, None)
    rest = api.get(whole["next"], headers=headers).json()
    assert (len(rest["results"]), rest["next"]) == (5, None)
    assert len({row["conversation_id"] for row in whole["results"] + rest["results"]}) == 55
    assert api.get(PATH, {"offset": 2**62}, headers=headers).json()["results"] == []


def test_list__highest_limit__is_allowed(api: APIClient, headers: dict[str, str]) -> None:
    assert api.get(PATH, {"limit": 100}, headers=headers).status_code == 200


def test_messages__of_a_conversation__come_in_order(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row = make_conversation(project, messages=103)

    shown = api.get(messages_path(row), headers=headers).json()

    assert (shown["count"], len(shown["results"])) == (103, 100)
    assert [message["sequence"] for message in shown["results"]] == list(range(1, 101))
    rest = api.get(messages_path(row), {"offset": 100}, headers=headers).json()
    assert [message["content"] for message in rest["results"]] == ["message 101", "message 102", "message 103"]
    assert len(api.get(messages_path(row), {"limit": 1000}, headers=headers).json()["results"]) == 103
    assert api.get(messages_path(row), {"limit": 1001}, headers=headers).status_code == 400


def test_message__of_a_tool__shows_what_was_called(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row = make_conversation(project)
    call = {"id": "call_1", "type": "function", "function": {"name": "list_sessions", "arguments": "{}"}}
    Message.objects.create(conversation=row, sequence=1, role=Role.ASSISTANT, tool_calls=[call], reasoning={"a": 1})
    Message.objects.create(
        conversation=row, sequence=2, role=Role.TOOL, content="{}", tool_call_id="call_1", tool_name="list_sessions"
    )

    assistant, tool = api.get(messages_path(row), headers=headers).json()["results"]

    assert assistant["tool_calls"] == [call]
    assert "reasoning" not in assistant
    assert (tool["role"], tool["tool_call_id"], tool["tool_name"]) == ("tool", "call_1", "list_sessions")


def test_delete__conversation__takes_its_messages_along(
    api: APIClient, headers: dict[str, str], project: Project
) -> None:
    row, kept = make_conversation(project, messages=3), make_conversation(project, messages=2)

    assert api.delete(f"{PATH}/{row.pk}", headers=headers).status_code == 204

    assert Message.objects.count() == 2
    assert list(Conversation.objects.all()) == [kept]
    again = api.delete(f"{PATH}/{row.pk}", headers=headers)
    assert (again.status_code, again.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("named", ["unknown", "foreign", "no-uuid"])
def test_conversation__unknown_or_foreign__is_404(
    api: APIClient, headers: dict[str, str], other: Project, named: str
) -> None:
    foreign = make_conversation(other, messages=1)
    path = f"{PATH}/{ {'unknown': uuid.uuid4(), 'foreign': foreign.pk}.get(named, named) }"

    for answer in (api.delete(path, headers=headers), api.get(f"{path}/messages", headers=headers)):
        assert answer.status_code == 404
        assert set(answer.json()["error"]) == {"message", "type", "code"}
    assert Message.objects.count() == 1


def calls(api: APIClient, conversation: Conversation, **options: Any) -> list[Any]:
    return [
        api.get(PATH, **options),
        api.post(PATH, {}, **options),
        api.get(messages_path(conversation), **options),
        api.delete(f"{PATH}/{conversation.pk}", **options),
    ]


def test_endpoints__agent_switched_off__are_403(api: APIClient, headers: dict[str, str], project: Project) -> None:
    row = make_conversation(project)
    make_settings(project, agent_enabled=False)

    for answer in calls(api, row, headers=headers):
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "agent_disabled"
    assert Conversation.objects.count() == 1


def test_endpoints__staff_session__serves_reads_and_needs_the_token_for_writes(
    project: Project,
) -> None:
    client = APIClient(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(make_staff(roles.Role.READER, project))
    headers = {"X-Project-Id": str(project.pk)}

    assert client.get(PATH, headers=headers).status_code == 200
    refused = client.post(PATH, {}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")


def test_lists__however_many_rows__take_as_many_queries(
    api: APIClient, headers: dict[str, str], project: Project, django_assert_num_queries: Any
) -> None:
    row = make_conversation(project, messages=30)
    for _ in range(30):
        make_conversation(project)
    api.get(PATH, headers=headers)

    # The queries read the key, the settings, the count and the rows; for messages the conversation too.
    with django_assert_num_queries(4):
        api.get(PATH, headers=headers)
    with django_assert_num_queries(5):
        api.get(messages_path(row), headers=headers)
