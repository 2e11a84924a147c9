from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent.errors import ConversationBusyError, NoConversationError, RunLostError
from agent.models import Conversation, Message, Role
from agent.services import NewMessage, Run, add_message, begin_run, create_conversation, delete_conversation, title_of
from agent.turn import admission
from agent.turn.admission import AdmittedChat, begin_chat
from agent.worker.leases import release_lease, renew_lease
from core.api.authentication import ProjectAccess
from core.models import Project
from core.wire.storable import storable
from tests.tables.cases import tabled

HELLO = NewMessage(Role.USER, content="What did we spend?")


def begin(project: Project, conversation_id: uuid.UUID | None = None, message: NewMessage = HELLO) -> Run:
    return begin_run(project_id=project.pk, conversation_id=conversation_id, message=message, actor="key:1")


def test_begin__without_id__makes_a_conversation_named_by_the_message(project: Project) -> None:
    run = begin(project)

    row = Conversation.objects.get(pk=run.conversation_id)
    assert (run.is_new, row.title, row.created_by, row.last_sequence) == (True, HELLO.content, "key:1", 1)
    message = Message.objects.get(conversation=row)
    assert (message.sequence, message.role, message.content) == (1, "user", HELLO.content)


def test_begin__conversation_with_a_title__keeps_it(project: Project) -> None:
    titled = create_conversation(project_id=project.pk, title="Mine", actor="test")
    untitled = create_conversation(project_id=project.pk, title="", actor="test")

    for row in (titled, untitled):
        assert begin(project, row.pk).is_new is False

    assert [Conversation.objects.get(pk=row.pk).title for row in (titled, untitled)] == ["Mine", HELLO.content]


def test_begin__while_another_runs__is_refused_and_says_nothing(project: Project) -> None:
    run = begin(project)

    with pytest.raises(ConversationBusyError):
        begin(project, run.conversation_id)

    assert Message.objects.count() == 1


def test_begin__after_the_end__goes_on(project: Project) -> None:
    run = begin(project)
    release_lease(run.conversation_id, run.run_id)

    again = begin(project, run.conversation_id)

    assert list(Message.objects.values_list("sequence", flat=True)) == [1, 2]
    with pytest.raises(RunLostError):
        add_message(run, HELLO)
    add_message(again, HELLO)


def test_begin__worker_was_killed__goes_on_when_its_lease_has_run_out(project: Project) -> None:
    run = begin(project)
    Conversation.objects.update(run_until=timezone.now() - timedelta(seconds=1))

    again = begin(project, run.conversation_id)

    assert renew_lease(again.conversation_id, again.run_id)
    assert not renew_lease(run.conversation_id, run.run_id)


def test_lease__ran_out_and_nobody_took_it__is_still_ones_own(project: Project) -> None:
    run = begin(project)
    Conversation.objects.update(run_until=timezone.now() - timedelta(seconds=1))

    add_message(run, HELLO)
    assert renew_lease(run.conversation_id, run.run_id)


def test_release__by_another__changes_nothing(project: Project) -> None:
    run = begin(project)
    release_lease(run.conversation_id, uuid.uuid4())

    with pytest.raises(ConversationBusyError):
        begin(project, run.conversation_id)


@pytest.mark.parametrize("foreign", [False, True])
def test_begin__unknown_or_foreign_conversation__is_not_found(project: Project, other: Project, foreign: bool) -> None:
    conversation_id = begin(other).conversation_id if foreign else uuid.uuid4()

    with pytest.raises(NoConversationError):
        begin(project, conversation_id)


def test_add__conversation_was_deleted__is_lost(project: Project) -> None:
    run = begin(project)
    delete_conversation(project_id=project.pk, conversation_id=run.conversation_id)

    with pytest.raises(RunLostError):
        add_message(run, HELLO)
    assert not renew_lease(run.conversation_id, run.run_id)


def test_delete__locks_the_row_before_it_looks_for_messages(project: Project) -> None:
    run = begin(project)

    with CaptureQueriesContext(connection) as captured:
        delete_conversation(project_id=project.pk, conversation_id=run.conversation_id)

    changing = [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert changing[0].startswith('UPDATE "agent_conversation"'), changing


def in_threads(work: Any, count: int) -> list[Any]:
    ready = threading.Barrier(count)

    def one(number: int) -> Any:
        try:
            ready.wait(30)
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.django_db(transaction=True)
def test_add__many_at_once__numbers_have_no_gap_and_no_double() -> None:
    project = Project.objects.create(name="at once")
    run = begin(project)

    in_threads(lambda number: add_message(run, NewMessage(Role.TOOL, content=str(number))), 8)

    rows = Message.objects.filter(conversation_id=run.conversation_id)
    assert list(rows.values_list("sequence", flat=True)) == list(range(1, 10))
    assert Conversation.objects.get().last_sequence == 9


@pytest.mark.django_db(transaction=True)
def test_delete__while_messages_come__leaves_nothing_and_loses_the_run() -> None:
    project = Project.objects.create(name="at once")
    run = begin(project)

    def work(number: int) -> str:
        if not number:
            delete_conversation(project_id=project.pk, conversation_id=run.conversation_id)
            return "deleted"
        try:
            for _ in range(20):
                add_message(run, HELLO)
        except RunLostError:
            return "lost"
        return "added"

    found = in_threads(work, 4)

    assert found[0] == "deleted"
    assert set(found[1:]) <= {"lost", "added"}
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_begin__many_at_once__one_gets_the_conversation() -> None:
    project = Project.objects.create(name="at once")
    row = create_conversation(project_id=project.pk, title="", actor="test")

    def attempt(number: int) -> bool:
        try:
            begin(project, row.pk)
        except ConversationBusyError:
            return False
        return True

    assert sorted(in_threads(attempt, 8)) == [False] * 7 + [True]
    assert Message.objects.count() == 1


def test_add__what_no_database_takes__is_stored_without_it(project: Project) -> None:
    run = begin(project, message=NewMessage(Role.USER, content="a\x00b", page_context={"page": "x\ud800", "data": {}}))
    call = {"id": "c", "function": {"name": "f", "arguments": '{"a": "\x00"}'}}
    add_message(run, NewMessage(Role.ASSISTANT, tool_calls=[call], reasoning={"x": float("inf"), "\x00": 1}))

    user, assistant = Message.objects.order_by("sequence")
    assert user.content == "a\ufffdb"
    assert user.page_context == {"page": "x\ufffd", "data": {}}
    assert assistant.tool_calls[0]["function"]["arguments"] == '{"a": "\ufffd"}'
    assert assistant.reasoning == {"x": None, "\ufffd": 1}


@tabled
def test_title__of_a_message__is_cut_at_a_word(message: str, title: str) -> None:
    assert title_of(message) == title


def test_storable__json__keeps_what_is_good() -> None:
    value = {
        "a": [1, 2.5, None, True, "ü"],
        "b": {"c": "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")},
    }
    assert storable(value) == value


def test_begin_chat__deleted_at_this_moment__is_not_found(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "recent_messages", lambda conversation_id: [])

    with pytest.raises(NoConversationError):
        begin_chat(AdmittedChat(ProjectAccess(project.pk, frozenset(), "key:1"), "auto", None, HELLO))
