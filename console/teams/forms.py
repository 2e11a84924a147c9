"""The forms of a team: its name and limits, where its keys go when it is deleted, and a new member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core.keys.services import LIMIT_FIELDS
from core.models import NAME_CHARACTERS, Membership, Team
from core.teams.serializers import NewTeamSerializer, TeamChangeSerializer
from core.teams.services import NO_TEAM
from core.wire.fields import MONEY_DIGITS, MONEY_PLACES

_BUDGETS = ("monthly_budget_usd", "total_budget_usd")
_EMPTY = "Empty: no limit."


def _budget(label: str) -> forms.DecimalField:
    return forms.DecimalField(
        required=False,
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_PLACES,
        label=label,
        help_text=f"In US dollars. {_EMPTY} 0: nothing may be spent.",
    )


class TeamForm(forms.Form):
    """The form of a team. The serializers of the API decide about the values."""

    name = forms.CharField(max_length=NAME_CHARACTERS, label="Name")
    monthly_budget_usd = _budget("Budget of a month")
    total_budget_usd = _budget("Budget in all")
    rate_limit_rpm = forms.IntegerField(required=False, label="Requests per minute", help_text=_EMPTY)
    rate_limit_tpm = forms.IntegerField(required=False, label="Tokens per minute", help_text=_EMPTY)
    max_concurrent_requests = forms.IntegerField(required=False, label="Requests at the same time", help_text=_EMPTY)

    def __init__(self, row: Team | None, given: Mapping[str, Any] | None = None) -> None:
        super().__init__(given)
        self._row = row
        self.values: Mapping[str, Any] = {}
        if row is not None:
            self.initial = {"name": row.name, **{name: _shown(getattr(row, name), name) for name in LIMIT_FIELDS}}

    def clean(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        data.update({name: float(data[name]) for name in _BUDGETS if data.get(name) is not None})
        serializer = (NewTeamSerializer if self._row is None else TeamChangeSerializer)(data=data)
        if serializer.is_valid():
            self.values = serializer.validated_data
        else:
            for field, problems in serializer.errors.items():
                if field not in self.errors:
                    self.add_error(field, [str(problem) for problem in problems])
        return self.cleaned_data


class DeletionForm(forms.Form):
    keys_to = forms.ChoiceField(label="Its keys go to")

    def __init__(self, row: Team) -> None:
        super().__init__()
        others = Team.objects.for_project(row.project_id).exclude(pk=row.pk).values_list("pk", "name")
        self.fields["keys_to"].choices = [(NO_TEAM, "no team"), *others]  # type: ignore[attr-defined]


class NewMemberForm(forms.Form):
    username = forms.ChoiceField(label="Member of the project")
    is_lead = forms.BooleanField(required=False, label="Leads the team: sees its keys and what each has spent")

    def __init__(self, row: Team) -> None:
        super().__init__()
        others = Membership.objects.for_project(row.project_id).exclude(teams__team=row)
        names = others.order_by("user__username").values_list("user__username", flat=True)
        self.fields["username"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


def _shown(value: Any, name: str) -> Any:
    """Returns a column's value; of a budget's ten decimal places only those that say anything."""
    return f"{value.normalize():f}" if name in _BUDGETS and value is not None else value
