"""Checks the caller, the message and the project's settings before a chat begins, in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework.renderers import BaseRenderer, JSONRenderer

from agent.errors import NoAgentModelError, NoConversationError
from agent.models import Role
from agent.selectors import recent_messages
from agent.serializers import ChatSerializer
from agent.services import NewMessage, Run, begin_run
from agent.tools.scopes import require_agent
from agent.turn.loop import Chat
from core.api.admission import Admission, with_session
from core.api.authentication import ProjectAccess
from core.models import Project


@dataclass(frozen=True, slots=True)
class AdmittedChat:
    access: ProjectAccess
    model: str
    conversation_id: UUID | None
    message: NewMessage


class EventStreamRenderer(BaseRenderer):
    media_type = "text/event-stream"
    format = "events"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return data


class _Chatting(Admission):
    operation_id = "chatWithAgent"
    body = ChatSerializer
    renderer_classes = [JSONRenderer, EventStreamRenderer]


def read_call(scope: dict[str, Any], body: bytes) -> AdmittedChat:
    """Returns the checked call. Raises the exceptions that `core.http.exception_handler.translate` knows."""
    chatting = _Chatting()
    chatting.admit(with_session(scope, body))
    settings = require_agent(chatting.project_id)
    given = chatting.valid_body(ChatSerializer).validated_data
    if not settings.model:
        raise NoAgentModelError("agent_model: No model is chosen for the agent, nor any preferred one.")
    return AdmittedChat(
        access=chatting.access,
        model=settings.model,
        conversation_id=given["conversation_id"],
        message=NewMessage(Role.USER, content=given["message"], page_context=given["page_context"]),
    )


def begin_chat(admitted: AdmittedChat) -> Chat:
    """Takes the lease of the conversation. Raises NoConversationError and ConversationBusyError."""
    run = begin_run(
        project_id=admitted.access.project_id,
        conversation_id=admitted.conversation_id,
        message=admitted.message,
        actor=admitted.access.actor,
    )
    rows = recent_messages(run.conversation_id)
    if not rows:
        raise NoConversationError("The conversation was deleted.")
    return Chat(
        run=run,
        rows=rows,
        project=_project_name(run),
        model=admitted.model,
        access=admitted.access,
        now=timezone.now(),
    )


def _project_name(run: Run) -> str:
    return Project.objects.values_list("name", flat=True).get(pk=run.project_id)
