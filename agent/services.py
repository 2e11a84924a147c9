from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agent.errors import ConversationBusyError, NoConversationError, RunLostError
from agent.models import (
    CALL_ID_CHARACTERS,
    NAME_CHARACTERS,
    Conversation,
    Message,
    MessageState,
    Role,
)
from agent.worker.leases import take_lease
from core.wire.storable import storable

_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class NewMessage:
    role: Role
    content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    state: MessageState = MessageState.COMPLETE
    error: str = ""
    request_id: str = ""
    page_context: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    project_id: UUID
    conversation_id: UUID
    run_id: UUID
    is_new: bool


def create_conversation(*, project_id: UUID, title: str, actor: str) -> Conversation:
    return Conversation.objects.create(project_id=project_id, title=title, created_by=actor)


def delete_conversation(*, project_id: UUID, conversation_id: UUID) -> None:
    """A running chat notices and ends. Raises NoConversationError."""
    rows = Conversation.objects.for_project(project_id).filter(pk=conversation_id)
    with transaction.atomic():
        # The row is locked before its messages are read, so that no chat adds one between them and the row.
        if not rows.update(run_id=None, run_until=None):
            raise NoConversationError("There is no such conversation.")
        rows.delete()


def begin_run(*, project_id: UUID, conversation_id: UUID | None, message: NewMessage, actor: str) -> Run:
    """Takes the conversation, or makes a new one without an id, and adds the user's message.

    Raises NoConversationError, and ConversationBusyError (409) while another chat answers in it.
    """
    run_id = uuid.uuid4()
    with transaction.atomic():
        if conversation_id is None:
            made = create_conversation(project_id=project_id, title="", actor=actor)
            run = Run(project_id, made.pk, run_id, is_new=True)
        else:
            run = Run(project_id, conversation_id, run_id, is_new=False)
        if not take_lease(project_id, run.conversation_id, run_id):
            _refuse(project_id, run.conversation_id)
        Conversation.objects.filter(pk=run.conversation_id, title="").update(title=title_of(message.content))
        add_message(run, message)
    return run


def add_message(run: Run, message: NewMessage) -> Message:
    """Raises RunLostError if the conversation was deleted or taken by another run."""
    now = timezone.now()
    cut = replace(
        message, tool_call_id=message.tool_call_id[:CALL_ID_CHARACTERS], tool_name=message.tool_name[:NAME_CHARACTERS]
    )
    with transaction.atomic():
        # The row stays locked until the message is stored, so that numbers follow the order of storing.
        held = Conversation.objects.filter(pk=run.conversation_id, run_id=run.run_id)
        if not held.update(last_sequence=F("last_sequence") + 1, updated_at=now):
            raise RunLostError
        return Message.objects.create(
            conversation_id=run.conversation_id,
            sequence=held.values_list("last_sequence", flat=True).get(),
            created_at=now,
            **storable(asdict(cut)),
        )


def _refuse(project_id: UUID, conversation_id: UUID) -> None:
    if Conversation.objects.for_project(project_id).filter(pk=conversation_id).exists():
        raise ConversationBusyError("The agent is answering in this conversation; wait until it is done.")
    raise NoConversationError("There is no such conversation.")


def title_of(message: str) -> str:
    text = " ".join(storable(message).split())
    if len(text) <= _TITLE_CHARACTERS:
        return text
    cut = text[:_TITLE_CHARACTERS]
    before, blank, _ = cut.rpartition(" ")
    return f"{(before if blank else cut).rstrip(' ,;:')}…"
