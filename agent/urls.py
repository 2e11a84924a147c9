"""The URLs of the agent that Django serves, below `/api/agent/`; the others are in `agent/routing.py`."""

from __future__ import annotations

from django.urls import path

from agent.views import ConversationsView, ConversationView, MessagesView

_CONVERSATION = "conversations/<uuid:conversation_id>"

urlpatterns = [
    path("conversations", ConversationsView.as_view(), name="agent-conversations"),
    path(_CONVERSATION, ConversationView.as_view(), name="agent-conversation"),
    path(f"{_CONVERSATION}/messages", MessagesView.as_view(), name="agent-messages"),
]
