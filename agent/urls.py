from __future__ import annotations

from agent.viewsets import ConversationViewSet
from core.api.routers import ProjectRouter

router = ProjectRouter()
router.register("conversations", ConversationViewSet, "agent-conversation")

urlpatterns = router.urls
