from __future__ import annotations

from core.api.routers import ProjectRouter
from prompts.viewsets.labels import LabelMoveViewSet, LabelViewSet
from prompts.viewsets.prompts import ActivationViewSet, ConfigViewSet, PromptViewSet, VersionViewSet

_CONFIG = "prompts/configs/<uuid:config_id>"

router = ProjectRouter()
router.register("prompts", PromptViewSet, "prompt")
router.register("prompts/configs", ConfigViewSet, "prompt-config")
router.register(f"{_CONFIG}/activations", ActivationViewSet, "prompt-activation")
router.register(f"{_CONFIG}/versions", VersionViewSet, "prompt-version")
router.register(f"{_CONFIG}/labels", LabelViewSet, "prompt-label")
router.register(f"{_CONFIG}/label-moves", LabelMoveViewSet, "prompt-label-move")

urlpatterns = router.urls
