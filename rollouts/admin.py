"""The table of rollouts in the admin, with the transitions of several at once, which ask first.

The operators' pages are in the console.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from typing_extensions import override

from core.site.admin import RightsAdmin
from rollouts.models import Rollout
from rollouts.moves import CONSEQUENCES, ReasonForm, move, verb
from rollouts.selectors import current_stage
from rollouts.states import Status, Transition


def _action(transition: Transition) -> Callable[..., Any]:
    @admin.action(description=f"{verb(transition).capitalize()} selected rollouts", permissions=["change"])
    def act(model_admin: RolloutAdmin, request: HttpRequest, queryset: QuerySet[Rollout]) -> HttpResponse | None:
        return model_admin.move(request, queryset, transition)

    act.__name__ = transition.value
    return act


@admin.register(Rollout)
class RolloutAdmin(RightsAdmin):
    list_display = ["name", "project", "config", "versions", "mode", "status", "progress", "verdict", "created_at"]
    list_filter = ["status", "mode", "project"]
    list_select_related = ["project", "config", "baseline_version", "target_version", "evaluation"]
    search_fields = ["name", "config__name", "project__name", "id"]
    actions = [_action(transition) for transition in Transition]

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Rollout]:
        rollouts = super().get_queryset(request).select_related(*self.list_select_related)
        return rollouts.defer("evaluation__initial", "evaluation__state").prefetch_related("stages")

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Rollout | None = None) -> bool:
        """An active rollout decides what its config serves, so it has to be ended before it is deleted."""
        ended = obj is None or Status(obj.status).is_terminal
        return ended and super().has_delete_permission(request, obj)

    @override
    def get_actions(self, request: HttpRequest) -> Any:
        # The built-in action would delete active rollouts, too.
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}

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

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Leads to the page of the rollout, whose address has the id in its usual form."""
        row: Rollout = self.get_object(request, object_id)
        return HttpResponseRedirect(reverse("admin:rollouts_rollout_change", args=[row.pk]))

    def move(self, request: HttpRequest, rollouts: QuerySet[Rollout], transition: Transition) -> HttpResponse | None:
        """Asks for confirmation and a reason, then moves each selected rollout and reports the result."""
        form = ReasonForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            context = {
                "title": f"{verb(transition).capitalize()}?",
                "rows": [(row, current_stage(row)) for row in rollouts],
                "action": transition.value,
                "verb": verb(transition),
                "consequence": CONSEQUENCES[transition],
                "form": form,
            }
            everything = {**self.admin_site.each_context(request), "opts": self.model._meta, **context}
            return TemplateResponse(request, "admin/rollouts/rollout/confirm.html", everything)
        for row in rollouts:
            stage = request.POST.get(f"stage_{row.pk}", "")
            reason = form.cleaned_data["reason"]
            move(request, row, transition, reason, from_stage=int(stage) if stage.isdecimal() else None)
        return None
