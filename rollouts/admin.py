from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from core.site.admin import RightsAdmin
from rollouts.models import Rollout
from rollouts.selectors import current_stage
from rollouts.states import Status


@admin.register(Rollout)
class RolloutAdmin(RightsAdmin):
    page_of_changes = "rollouts"
    list_display = ["name", "project", "config", "versions", "mode", "status", "progress", "verdict", "created_at"]
    list_filter = ["status", "mode", "project"]
    list_select_related = ["project", "config", "baseline_version", "target_version", "evaluation"]
    search_fields = ["name", "config__name", "project__name", "id"]
    date_hierarchy = "created_at"
    # The action that deletes several would delete active rollouts, too.
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rollout]:
        rollouts = super().get_queryset(request).select_related(*self.list_select_related)
        return rollouts.defer("evaluation__initial", "evaluation__state").prefetch_related("stages")

    def has_delete_permission(self, request: HttpRequest, obj: Rollout | None = None) -> bool:
        """An active rollout decides what its config serves, so end it before deleting it."""
        ended = obj is None or Status(obj.status).is_terminal
        return ended and super().has_delete_permission(request, obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row: Rollout = self.get_object(request, object_id)
        return HttpResponseRedirect(reverse("admin:rollouts_rollout_change", args=[row.pk]))

    @admin.display(description="versions")
    def versions(self, row: Rollout) -> str:
        return f"{row.baseline_version.number} → {row.target_version.number}"

    @admin.display(description="progress")
    def progress(self, row: Rollout) -> str:
        stage, count = current_stage(row), len(row.stages.all())
        return f"stage {stage.number} of {count}, {stage.weight} %" if stage else f"{count} stages"

    @admin.display(description="verdict")
    def verdict(self, row: Rollout) -> str:
        return str(row.evaluation.verdict.get("status", "-"))
