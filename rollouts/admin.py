"""Rollouts in the admin: a list, a page with stages, figures and plots, and the transitions, which ask first.

Whatever moves one calls a service, as an action on one or on several. The pages of people are in `rollouts.pages`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import mark_safe
from typing_extensions import override

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from core.rights.admin import RightsAdmin
from rollouts.comparisons import judged_metrics
from rollouts.metrics import latest_figures, open_by_arm, present_outlook, totals_of
from rollouts.models import Rollout, RolloutMinute, RolloutStage
from rollouts.moves import CONSEQUENCES, ReasonForm, move, possible, verb
from rollouts.pages.rollout_form import RolloutFormPage as RolloutFormPage
from rollouts.pages.rollouts import RolloutsPage as RolloutsPage
from rollouts.plots import plots
from rollouts.policies import policy_of
from rollouts.selectors import current_stage, earlier_rollbacks
from rollouts.serializers import stage_status
from rollouts.states import Status, Transition
from rollouts.tables import metric_rows, total_rows


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
        """The page of one rollout, for reading only."""
        row = self.get_object(request, object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return self._render(request, "detail", self._page(request, row))

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
            return self._render(request, "confirm", context)
        for row in rollouts:
            stage = request.POST.get(f"stage_{row.pk}", "")
            reason = form.cleaned_data["reason"]
            move(request, row, transition, reason, from_stage=int(stage) if stage.isdecimal() else None)
        return None

    def _page(self, request: HttpRequest, row: Rollout) -> dict[str, Any]:
        evaluation, stages = row.evaluation, list(row.stages.all())
        counts = RolloutMinute.objects.filter(rollout=row).order_by("minute", "stage").values_list("counts", flat=True)
        figures = latest_figures(row)
        return {
            "title": f"Rollout {row.name}",
            "row": row,
            "stage": current_stage(row),
            "earlier": earlier_rollbacks(row),
            "stages": [(stage, stage_status(row, stage)) for stage in stages],
            "done": _done(row, stages),
            "evaluation": evaluation,
            "figures": figures,
            "metrics": metric_rows(judged_metrics(figures, policy_of(row).cost_allowance)),
            "counts": _counts(row),
            "open_requests": open_by_arm(row),
            "outlook": present_outlook(row, figures),
            # The SVG comes from rollouts.plots, which makes it of numbers and fixed labels.
            "plots": [(plot.title, mark_safe(plot.svg)) for plot in plots(counts.iterator())],  # noqa: S308
            "transitions": row.transitions.order_by("-id"),
            "moves": [(one.value, verb(one)) for one in possible(row)]
            if self.has_change_permission(request, row)
            else [],
        }

    def _render(self, request: HttpRequest, name: str, context: dict[str, Any]) -> TemplateResponse:
        everything = {**self.admin_site.each_context(request), "opts": self.model._meta, **context}
        return TemplateResponse(request, f"admin/rollouts/rollout/{name}.html", everything)


def _counts(row: Rollout) -> list[tuple[str, list[Any]]] | None:
    """Returns None while the request log does not answer; the rest of the page is shown without it."""
    try:
        return total_rows(totals_of(row))
    except (AnalyticsUnavailableError, AnalyticsLimitError):
        return None


def _done(row: Rollout, stages: list[RolloutStage]) -> int:
    """Returns the percentage of the stages that are over."""
    if row.status == Status.COMPLETED:
        return 100
    left = sum(stage.left_at is not None for stage in stages)
    return round(100 * left / len(stages))
