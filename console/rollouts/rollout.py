from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404
from django.http.response import HttpResponseBase

from console.rollouts import panels as loads
from console.rollouts.gate import gate, is_closed
from console.rollouts.links import links
from console.rollouts.scores import scores
from console.rollouts.segments import segments
from console.rollouts.signals import signals
from console.rollouts.watch import is_watched, watch
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from rollouts import services
from rollouts.models import REASON_CHARACTERS, Gate, Mode, Rollout
from rollouts.quality.entries import entries_of, is_test
from rollouts.selectors import earlier_rollbacks, get_rollout
from rollouts.states import ALLOWED, Status, Transition

REFRESH_SECONDS = 60

Load = Callable[[Visit, Rollout], Mapping[str, Any]]
"""Returns the context of a panel."""

_MODES = {Mode.AUTO.value: "decides by itself", Mode.MANUAL.value: "people decide"}
_ALLOCATIONS = {
    "random": "each request by chance",
    "user_sticky": "each user stays with one version",
    "session_sticky": "each session stays with one version",
}
_DANGEROUS = frozenset({Transition.ROLL_BACK})


_SERVICES: Mapping[Transition, Callable[..., Rollout]] = MappingProxyType(
    {
        Transition.START: services.start_rollout,
        Transition.PAUSE: services.pause_rollout,
        Transition.PROMOTE: services.promote_rollout,
        Transition.ROLL_BACK: services.roll_back_rollout,
        Transition.COMPLETE: services.complete_rollout,
    }
)
CONSEQUENCES: Mapping[Transition, str] = MappingProxyType(
    {
        Transition.START: "The target gets its share of traffic from now on.",
        Transition.PAUSE: "While it is paused its requests get no managed prompt at all.",
        Transition.PROMOTE: "The target gets the next stage's share; at the last stage it becomes the active version.",
        Transition.ROLL_BACK: "All traffic returns to the baseline, and the rollout is over.",
        Transition.COMPLETE: "The remaining stages are skipped: the target becomes the active version.",
    }
)

_BEGINNING = frozenset({Transition.START, Transition.COMPLETE})


class ReasonForm(forms.Form):
    reason = forms.CharField(
        required=False,
        max_length=REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        help_text="Kept in the history.",
    )


class BeginningForm(ReasonForm):
    override_gate = forms.BooleanField(
        required=False, label="Override the gate", help_text="What it asks for is not shown. Takes a reason."
    )

    def clean(self) -> None:
        if self.cleaned_data.get("override_gate") and self.cleaned_data.get("reason") == "":
            self.add_error("reason", services.OVERRIDE_TAKES_REASON)


def form_of(transition: Transition, *, is_closed: bool) -> type[ReasonForm]:
    return BeginningForm if is_closed and transition in _BEGINNING else ReasonForm


def verb(transition: Transition) -> str:
    return transition.value.replace("_", " ")


def possible(rollout: Rollout) -> list[Transition]:
    return [one for one in Transition if Status(rollout.status) in ALLOWED[one]]


def move(
    visit: Visit,
    rollout: Rollout,
    transition: Transition,
    given: Mapping[str, Any],
    href: str,
    *,
    from_stage: int | None = None,
) -> HttpResponseBase:
    """Makes the transition as the visit's person, then redirects to `href` with a message.

    A promotion applies to `from_stage`, the stage that the person saw, in case somebody else was faster.
    """
    more = dict(given)
    if transition is Transition.PROMOTE:
        more["from_stage"] = rollout.current_stage if from_stage is None else from_stage
    try:
        moved = _SERVICES[transition](
            project_id=rollout.project_id,
            rollout_id=rollout.pk,
            actor=visit.actor,
            **more,
        )
    except ApplicationError as error:
        return visit.failed(f"Rollout {rollout.name}: {error.message}", href)
    visit.note_change(moved, f"{verb(transition).capitalize()}. {given['reason']}".strip())
    return visit.done(f"Rollout {rollout.name} is now {moved.status.replace('_', ' ')}.", href)


class RolloutPage(Page):
    # The address is that of Django's form, whose place the page takes.
    route = "rollouts/rollout/<uuid:rollout_id>/change/"
    name = "rollouts_rollout_change"
    title = "Rollout"
    parent = "rollouts"
    model = Rollout

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return self._context(visit, get_rollout(visit.project.pk, route["rollout_id"]))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        row = get_rollout(visit.project.pk, route["rollout_id"])
        # An ended rollout does not change any more.
        seconds = 0 if row.ended_at else REFRESH_SECONDS
        known: list[tuple[str, str, Load]] = [
            *([("gate", "Gate", gate)] if row.gate != Gate.NONE else []),
            ("verdict", "Verdict", loads.verdict),
            ("metrics", "Metrics", loads.metrics),
            *([("scores", "Scores", scores)] if row.quality else []),
            *([("signals", "What users did", signals)] if row.started_at else []),
            ("segments", "Parts of the traffic", segments),
            *([("watch", "At 100 %", watch)] if is_watched(row) else []),
            ("requests", "Requests of the arms", loads.requests),
            ("history", "Stages and history", loads.history),
        ]
        return [
            Panel(
                name,
                title,
                f"rollouts/{name}.html",
                partial(_context, load, visit, row.pk),
                is_wide=True,
                refresh_seconds=seconds,
            )
            for name, title, load in known
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        row, given = get_rollout(visit.project.pk, route["rollout_id"]), visit.request.POST
        try:
            transition = Transition(given.get("action", ""))
        except ValueError:
            raise Http404("There is no such action.") from None
        form = form_of(transition, is_closed=is_closed(row))(given)
        if not form.is_valid():
            panels = self.panels(visit, **route)
            return self.render(visit, panels, **self._context(visit, row, transition, form))
        stage = given.get("stage", "")
        from_stage = int(stage) if stage.isdecimal() else None
        return move(visit, row, transition, form.cleaned_data, visit.link(self.name, row.pk), from_stage=from_stage)

    def _context(
        self, visit: Visit, row: Rollout, chosen: Transition | None = None, form: ReasonForm | None = None
    ) -> Mapping[str, Any]:
        closed = is_closed(row)
        moves = [
            {
                "action": one.value,
                "verb": verb(one),
                "consequence": CONSEQUENCES[one],
                "is_dangerous": one in _DANGEROUS,
                "form": form if one is chosen else form_of(one, is_closed=closed)(auto_id=f"{one.value}_%s"),
                "is_open": one is chosen,
            }
            for one in possible(row)
        ]
        return {
            "title": f"Rollout {row.name}",
            "row": row,
            "mode": f"{'A/B test; ' if is_test(entries_of(row)) else ''}{_MODES[row.mode]}",
            "allocation": _ALLOCATIONS[row.allocation_type],
            "links": links(visit, row),
            "made_by": loads.names_of(row)[row.created_by],
            "earlier": [(one, visit.link(self.name, one.pk)) for one in earlier_rollbacks(row)],
            "moves": moves if visit.may(Right.EDIT) else [],
        }


def _context(load: Load, visit: Visit, rollout_id: UUID) -> Mapping[str, Any]:
    """Reads the rollout itself, since it runs in a thread of its own."""
    return load(visit, get_rollout(visit.project.pk, rollout_id))
