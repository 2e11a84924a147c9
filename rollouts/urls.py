from __future__ import annotations

from core.api.routers import ProjectRouter
from rollouts.viewsets import RolloutViewSet

router = ProjectRouter()
router.register("prompts/rollouts", RolloutViewSet, "rollout")

urlpatterns = router.urls
