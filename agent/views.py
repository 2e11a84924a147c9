"""The REST API of conversations; chats are in `agent.consumers`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from agent import selectors, services
from agent.serializers import ConversationMessageSerializer, ConversationSerializer, NewConversationSerializer
from agent.tools.scopes import require_agent
from core.openapi import operation, page_parameters
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset

DEFAULT_CONVERSATIONS, MAX_CONVERSATIONS = 50, 100
DEFAULT_MESSAGES, MAX_MESSAGES = 100, 1000


class ConversationPages(LimitOffset):
    default_limit = DEFAULT_CONVERSATIONS
    max_limit = MAX_CONVERSATIONS


class MessagePages(LimitOffset):
    default_limit = DEFAULT_MESSAGES
    max_limit = MAX_MESSAGES


class AgentAPIView(ProjectAPIView):
    """The base of the agent's views, which refuse every call when the project's agent is switched off."""

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_agent(self.project_id)


class ConversationsView(AgentAPIView):
    @operation(
        "listConversations",
        "List conversations",
        query=[page_parameters(DEFAULT_CONVERSATIONS, MAX_CONVERSATIONS)],
        page=ConversationSerializer,
    )
    def get(self, request: Request) -> Response:
        """Lists the conversations, the most recently used first."""
        pages = ConversationPages()
        rows = pages.paginate_queryset(selectors.list_conversations(self.project_id), request, self)
        return pages.get_paginated_response(ConversationSerializer(rows, many=True).data)

    @operation(
        "createConversation",
        "Begin a conversation",
        body=NewConversationSerializer,
        answer=ConversationSerializer,
        status=201,
    )
    def post(self, request: Request) -> Response:
        """Makes an empty conversation. A chat without `conversation_id` makes one too."""
        serializer = NewConversationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = services.create_conversation(
            project_id=self.project_id, title=serializer.validated_data["title"] or "", actor=self.actor
        )
        return Response(ConversationSerializer(row).data, status=status.HTTP_201_CREATED)


class ConversationView(AgentAPIView):
    @operation("deleteConversation", "Delete a conversation", status=204, errors=[404])
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """Deletes a conversation with all its messages. A chat that is running in it ends."""
        services.delete_conversation(project_id=self.project_id, conversation_id=conversation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MessagesView(AgentAPIView):
    @operation(
        "listConversationMessages",
        "Messages of a conversation",
        query=[page_parameters(DEFAULT_MESSAGES, MAX_MESSAGES)],
        page=ConversationMessageSerializer,
        errors=[404],
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """Lists the messages in their order: the user's, the agent's with its tool calls, and the tools' results."""
        conversation = selectors.get_conversation(self.project_id, conversation_id)
        pages = MessagePages()
        rows = pages.paginate_queryset(selectors.list_messages(conversation), request, self)
        return pages.get_paginated_response(ConversationMessageSerializer(rows, many=True).data)
