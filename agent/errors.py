"""The agent's failures.

ApplicationError
├── PermissionDeniedError
│   └── AgentDisabledError      403 agent_disabled
├── NotFoundError
│   └── NoConversationError     404 conversation_not_found
├── ConflictError
│   └── ConversationBusyError   409 conversation_busy
└── ValidationError
    └── NoAgentModelError       400 no_agent_model

RunLostError is no answer to anybody: the conversation is gone, or another chat has taken it over.
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, PermissionDeniedError, ValidationError


class AgentDisabledError(PermissionDeniedError):
    code = "agent_disabled"


class NoConversationError(NotFoundError):
    code = "conversation_not_found"


class ConversationBusyError(ConflictError):
    code = "conversation_busy"


class NoAgentModelError(ValidationError):
    code = "no_agent_model"


class RunLostError(Exception):
    """Raised when the run may write nothing more into its conversation."""
