from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from agent import selectors, services
from agent.serializers import ConversationMessageSerializer, ConversationSerializer, NewConversationSerializer
from agent.tools.scopes import require_agent
from core.api.viewsets import ProjectViewSet
from core.openapi import operation, page_parameters
from core.wire.pagination import LimitOffset

DEFAULT_CONVERSATIONS, MAX_CONVERSATIONS = 50, 100
DEFAULT_MESSAGES, MAX_MESSAGES = 100, 1000


class ConversationPages(LimitOffset):
    default_limit = DEFAULT_CONVERSATIONS
    max_limit = MAX_CONVERSATIONS


class MessagePages(LimitOffset):
    default_limit = DEFAULT_MESSAGES
    max_limit = MAX_MESSAGES


class ConversationViewSet(ProjectViewSet):
    lookup_url_kwarg = "conversation_id"
    lookup_value_converter = "uuid"
    pagination_class = ConversationPages

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuses every call when the project's agent is switched off."""
        super().initial(request, *args, **kwargs)
        require_agent(self.project_id)

    @operation(
        "listConversations",
        "List conversations",
        query=[page_parameters(DEFAULT_CONVERSATIONS, MAX_CONVERSATIONS)],
        page=ConversationSerializer,
    )
    def list(self, request: Request) -> Response:
        """Lists the conversations, the most recently used first."""
        return self.page(selectors.list_conversations(self.project_id), ConversationSerializer)

    @operation(
        "createConversation",
        "Begin a conversation",
        body=NewConversationSerializer,
        answer=ConversationSerializer,
        status=201,
    )
    def create(self, request: Request) -> Response:
        """Makes an empty conversation. A chat without `conversation_id` makes one too."""
        title = self.valid_body(NewConversationSerializer).validated_data["title"] or ""
        row = services.create_conversation(project_id=self.project_id, title=title, actor=self.actor)
        return Response(ConversationSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("deleteConversation", "Delete a conversation", status=204, errors=[404])
    def destroy(self, request: Request, conversation_id: UUID) -> Response:
        """Deletes a conversation with all its messages. A chat that is running in it ends."""
        services.delete_conversation(project_id=self.project_id, conversation_id=conversation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "listConversationMessages",
        "Messages of a conversation",
        query=[page_parameters(DEFAULT_MESSAGES, MAX_MESSAGES)],
        page=ConversationMessageSerializer,
        errors=[404],
    )
    @action(detail=True, pagination_class=MessagePages)
    def messages(self, request: Request, conversation_id: UUID) -> Response:
        """Lists the messages in their order: the user's, the agent's with its tool calls, and the tools' results."""
        conversation = selectors.get_conversation(self.project_id, conversation_id)
        return self.page(selectors.list_messages(conversation), ConversationMessageSerializer)
