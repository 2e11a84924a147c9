from __future__ import annotations

from django import forms

from core.models import Membership, Team
from core.teams.serializers import NewTeamSerializer
from core.teams.services import NO_TEAM
from core.ui.forms import SerializerForm

_EMPTY = "Empty: no limit."
_BUDGET = f"In US dollars. {_EMPTY} 0: nothing may be spent."


class TeamForm(SerializerForm[NewTeamSerializer]):
    serializer = NewTeamSerializer
    words = {
        "name": "Name",
        "monthly_budget_usd": ("Budget of a month", _BUDGET),
        "total_budget_usd": ("Budget in all", _BUDGET),
        "rate_limit_rpm": ("Requests per minute", _EMPTY),
        "rate_limit_tpm": ("Tokens per minute", _EMPTY),
        "max_concurrent_requests": ("Requests at the same time", _EMPTY),
    }


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
