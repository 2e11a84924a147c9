"""Conversations over REST; chats are in `agent.consumers`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from agent import selectors, services
from agent.scopes import require_agent
from agent.serializers import ConversationMessageSerializer, ConversationSerializer, NewConversationSerializer
from core.openapi import operation, page_parameters
from core.pagination import LimitOffset
from core.views import ProjectAPIView

DEFAULT_CONVERSATIONS, MOST_CONVERSATIONS = 50, 100
DEFAULT_MESSAGES, MOST_MESSAGES = 100, 1000


class ConversationPages(LimitOffset):
    default_limit = DEFAULT_CONVERSATIONS
    max_limit = MOST_CONVERSATIONS


class MessagePages(LimitOffset):
    default_limit = DEFAULT_MESSAGES
    max_limit = MOST_MESSAGES


class AgentAPIView(ProjectAPIView):
    """Refused as a whole where the project's agent is switched off."""

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_agent(self.project_id)


class ConversationsView(AgentAPIView):
    @operation(
        "listConversations",
        "List conversations",
        query=[page_parameters(DEFAULT_CONVERSATIONS, MOST_CONVERSATIONS)],
        page=ConversationSerializer,
    )
    def get(self, request: Request) -> Response:
        """The last used first."""
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
        """An empty one. A chat without `conversation_id` begins one too."""
        wanted = NewConversationSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        row = services.create_conversation(
            project_id=self.project_id, title=wanted.validated_data["title"] or "", actor=self.actor
        )
        return Response(ConversationSerializer(row).data, status=status.HTTP_201_CREATED)


class ConversationView(AgentAPIView):
    @operation("deleteConversation", "Delete a conversation", status=204, errors=[404])
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        """With all its messages. A chat that is under way in it ends."""
        services.delete_conversation(project_id=self.project_id, conversation_id=conversation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MessagesView(AgentAPIView):
    @operation(
        "listConversationMessages",
        "Messages of a conversation",
        query=[page_parameters(DEFAULT_MESSAGES, MOST_MESSAGES)],
        page=ConversationMessageSerializer,
        errors=[404],
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """In the order they were said: the user's, the agent's with its tool calls, and what the tools gave."""
        conversation = selectors.get_conversation(self.project_id, conversation_id)
        pages = MessagePages()
        rows = pages.paginate_queryset(selectors.list_messages(conversation), request, self)
        return pages.get_paginated_response(ConversationMessageSerializer(rows, many=True).data)
