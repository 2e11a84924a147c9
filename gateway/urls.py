from __future__ import annotations

from core.api.routers import ProjectRouter
from gateway.configuration.viewsets import PromptFileViewSet
from gateway.end_users.viewsets import EndUserLimitViewSet
from gateway.evaluations.viewsets import EvaluatorDryRunViewSet, OnlineEvaluationViewSet
from gateway.experiments.viewsets import ExperimentViewSet
from gateway.figure_alerts.viewsets import AlertChannelViewSet, FigureAlertViewSet
from gateway.model_catalog.viewsets import ModelCatalogViewSet
from gateway.model_groups.viewsets import ModelGroupViewSet
from gateway.playground.viewsets import PlaygroundViewSet
from gateway.teams.viewsets import TeamViewSet
from gateway.viewsets import CacheViewSet, ProblemViewSet, SettingsViewSet, UsageViewSet

router = ProjectRouter()
router.register("", SettingsViewSet, "settings")
router.register("", CacheViewSet, "cache")
router.register("usage", UsageViewSet, "usage")
router.register("problems", ProblemViewSet, "problem")
router.register("end-user-limits", EndUserLimitViewSet, "end-user-limit")
router.register("models", ModelCatalogViewSet, "model-catalog")
router.register("model-groups", ModelGroupViewSet, "model-group")
router.register("alerts", FigureAlertViewSet, "alert")
router.register("alert-channels", AlertChannelViewSet, "alert-channel")
router.register("teams", TeamViewSet, "team")
router.register("playground", PlaygroundViewSet, "playground")
router.register("prompts/configs/<uuid:config_id>/versions", PromptFileViewSet, "prompt-file")
router.register("evaluators", EvaluatorDryRunViewSet, "evaluator-dry-run")
router.register("online-evaluations", OnlineEvaluationViewSet, "online-evaluation")
router.register("experiments", ExperimentViewSet, "experiment")

urlpatterns = router.urls
