"""What has to hold before a chat begins: who calls, what they say, what the project allows. In a thread."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from rest_framework.renderers import BaseRenderer, JSONRenderer
from typing_extensions import override

from agent.errors import NoAgentModelError, NoConversationError
from agent.loop import Chat
from agent.models import Role
from agent.scopes import require_agent
from agent.selectors import recent_messages
from agent.serializers import ChatSerializer
from agent.services import NewMessage, Run, begin_run
from core.authentication import ProjectAccess
from core.hosts import require_known_host
from core.models import Project
from core.views import ProjectAPIView


@dataclass(frozen=True, slots=True)
class Asked:
    """A chat that may begin. `access` is the caller's."""

    access: ProjectAccess
    model: str
    conversation_id: UUID | None
    said: NewMessage


class EventStreamRenderer(BaseRenderer):
    """There so that clients may accept event streams; events are not rendered here."""

    media_type = "text/event-stream"
    format = "events"

    @override
    def render(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return data


class _Caller(ProjectAPIView):
    """REST framework's own stages, for a call that no view of Django's answers."""

    operation_id = "chatWithAgent"
    renderer_classes = [JSONRenderer, EventStreamRenderer]
    http_method_names = ["post"]

    def asked(self, http: HttpRequest) -> Asked:
        request = self.initialize_request(http)
        self.request, self.args, self.kwargs = request, (), {}
        self.format_kwarg = None
        self.initial(request)
        settings = require_agent(self.project_id)
        wanted = ChatSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        given = wanted.validated_data
        if not settings.model:
            raise NoAgentModelError(
                "agent_model: the project's settings name no model for the agent, nor any preferred."
            )
        return Asked(
            access=self.access,
            model=settings.model,
            conversation_id=given["conversation_id"],
            said=NewMessage(Role.USER, content=given["message"], page_context=given["page_context"]),
        )


def read_call(scope: dict[str, Any], body: bytes) -> Asked:
    """Raises what `core.exception_handler.translate` knows."""
    http = ASGIRequest(scope, io.BytesIO(body))
    http.META["CONTENT_LENGTH"] = str(len(body))  # a chunked body says none, and would be taken for an empty one
    require_known_host(http)
    for middleware in (SessionMiddleware, AuthenticationMiddleware):
        middleware(_no_response).process_request(http)
    return _Caller().asked(http)


def begin_chat(asked: Asked) -> Chat:
    """Takes the conversation. Raises NoConversationError and ConversationBusyError."""
    run = begin_run(
        project_id=asked.access.project_id,
        conversation_id=asked.conversation_id,
        said=asked.said,
        actor=asked.access.actor,
    )
    rows = recent_messages(run.conversation_id)
    if not rows:
        raise NoConversationError("The conversation was deleted.")
    return Chat(
        run=run,
        rows=rows,
        project=_project_name(run),
        model=asked.model,
        access=asked.access,
        now=timezone.now(),
    )


def _project_name(run: Run) -> str:
    return Project.objects.values_list("name", flat=True).get(pk=run.project_id)


def _no_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse()
