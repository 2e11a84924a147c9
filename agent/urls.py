"""The URLs of the agent that Django serves, below `/api/agent/`; the others are in `agent/routing.py`."""

from __future__ import annotations

from agent.viewsets import ConversationViewSet
from core.api.routers import ProjectRouter

router = ProjectRouter()
router.register("conversations", ConversationViewSet, "agent-conversation")

urlpatterns = router.urls
