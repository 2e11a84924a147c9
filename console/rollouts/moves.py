"""Transitions of rollouts that people make at pages: what each of them does in words, and the move itself, which is
reported in messages and kept in the admin's own history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib import messages

from core.errors import ApplicationError
from core.ui.pages import Visit
from rollouts import services
from rollouts.models import REASON_CHARACTERS, Rollout
from rollouts.states import ALLOWED, Status, Transition

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
    """The form of a transition that a gate stands before."""

    override_gate = forms.BooleanField(
        required=False, label="Override the gate", help_text="What it asks for is not shown. Takes a reason."
    )

    def clean(self) -> None:
        if self.cleaned_data.get("override_gate") and self.cleaned_data.get("reason") == "":
            self.add_error("reason", services.OVERRIDE_TAKES_REASON)


def form_of(transition: Transition, *, is_closed: bool) -> type[ReasonForm]:
    """Returns the form of a transition of a rollout whose gate is closed or not."""
    return BeginningForm if is_closed and transition in _BEGINNING else ReasonForm


def verb(transition: Transition) -> str:
    return transition.value.replace("_", " ")


def possible(rollout: Rollout) -> list[Transition]:
    """Returns the transitions that the rollout's status allows."""
    return [one for one in Transition if Status(rollout.status) in ALLOWED[one]]


def move(
    visit: Visit,
    rollout: Rollout,
    transition: Transition,
    given: Mapping[str, Any],
    *,
    from_stage: int | None = None,
) -> None:
    """Makes the transition for the person of the visit, as the form says; a refusal becomes a message. A promotion
    applies to the stage that the person saw, since somebody else may have been faster."""
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
        messages.error(visit.request, f"Rollout {rollout.name}: {error.message}")
        return
    visit.note_change(moved, f"{verb(transition).capitalize()}. {given['reason']}".strip())
    messages.success(visit.request, f"Rollout {rollout.name} is now {moved.status.replace('_', ' ')}.")
