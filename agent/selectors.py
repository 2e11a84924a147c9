from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from agent.errors import NoConversationError
from agent.models import Conversation, Message

# More messages than a model is ever sent: `agent.turn.transcript` takes as many as fit.
_RECENT = 500


def list_conversations(project_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.for_project(project_id)


def get_conversation(project_id: UUID, conversation_id: UUID) -> Conversation:
    """Raises NoConversationError, also for another project's."""
    row = Conversation.objects.for_project(project_id).filter(pk=conversation_id).first()
    if row is None:
        raise NoConversationError("There is no such conversation.")
    return row


def recent_messages(conversation_id: UUID) -> list[Message]:
    return list(Message.objects.filter(conversation_id=conversation_id).order_by("-sequence")[:_RECENT])[::-1]


def list_messages(conversation: Conversation) -> QuerySet[Message]:
    return Message.objects.filter(conversation=conversation).order_by("sequence")
