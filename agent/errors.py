"""RunLostError reaches no caller: the conversation is gone, or another chat has taken it over."""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, PermissionDeniedError, ValidationError

AgentDisabledError = PermissionDeniedError.kind("agent_disabled")
NoConversationError = NotFoundError.kind("conversation_not_found")
ConversationBusyError = ConflictError.kind("conversation_busy")
NoAgentModelError = ValidationError.kind("no_agent_model")


class RunLostError(Exception):
    pass
