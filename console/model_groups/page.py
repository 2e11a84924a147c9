from __future__ import annotations

from typing import Any

from django import forms
from django.utils.html import format_html_join

from core.resources.page import ResourceForm, ResourcePage
from core.ui.formats import moment
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from gateway.model_groups.serializers import NewGroupSerializer
from gateway.model_groups.services import MODEL_GROUPS
from gateway.models import ModelGroupRow
from gateway.project_settings.model_groups import Strategy
from gateway.tables.group import MAX_WEIGHT, MEMBER_CHARACTERS, validate_members

_STRATEGIES = (
    (Strategy.ORDERED.value, "In order: the first model that answers"),
    (Strategy.WEIGHTED.value, "By weight: each session keeps the model that it drew"),
)


class MembersField(forms.CharField):
    """Models, one a line, each followed by its weight; the default weight is 1."""

    widget = forms.Textarea

    def clean(self, value: Any) -> list[dict[str, Any]]:
        lines = [line.split() for line in super().clean(value).splitlines() if line.strip()]
        members = [_member(words) for words in lines]
        validate_members(members)
        return members


def _member(words: list[str]) -> dict[str, Any]:
    model, *rest = words
    if len(rest) > 1 or (rest and not (rest[0].isdecimal() and int(rest[0]) <= MAX_WEIGHT)):
        raise forms.ValidationError(f"{model}: a model and a weight from 0 to {MAX_WEIGHT} are expected in a line.")
    if len(model) > MEMBER_CHARACTERS:
        raise forms.ValidationError(f"A model's name has at most {MEMBER_CHARACTERS} characters.")
    return {"model": model, "weight": int(rest[0]) if rest else 1}


class GroupForm(ResourceForm):
    serializer = NewGroupSerializer
    words = {"name": ("Name", "What requests send as model. No /, not the name of a provider.")}
    field_order = ("name",)
    once = ("name",)

    strategy = forms.ChoiceField(choices=_STRATEGIES, label="Order")
    members = MembersField(
        label="Models", help_text="One a line, the weight behind it: openai/gpt-4o-mini 3. Weight 0: only a fallback."
    )

    def initial_of(self, record: ModelGroupRow) -> dict[str, Any]:
        lines = "\n".join(f"{member['model']} {member['weight']}" for member in record.members)
        return {"strategy": record.strategy, "members": lines}


class ModelGroupsPage(ResourcePage):
    route = "model-groups/"
    name = "model_groups"
    title = "Model groups"
    has_range = False
    key = "group"
    resource = MODEL_GROUPS
    form_class = GroupForm
    about = "A name of your own that stands for several models, in order or by weight."
    new, instead, remove = "New group", "New group instead", "Delete"
    removal = "Requests that name it get 404 from then on."
    removed = "{row} was deleted: requests that name it get 404."

    def table(self, visit: Visit) -> Table:
        return Table(
            caption="Model groups of this project",
            columns=[
                Column("name", "Group", lambda row: row.name),
                Column("strategy", "Order", lambda row: row.strategy),
                Column("members", "Models and weights", _members),
                Column("changed", "Changed", lambda row: moment(row.updated_at)),
            ],
            rows=list(self.resource.rows(visit.project.pk)),
            key=(lambda row: self.address(visit, row)) if visit.may(self.right) else None,
            empty=Empty("No model group yet: a group is a name of your own that requests send as model."),
        )


def _members(row: ModelGroupRow) -> Any:
    is_weighted = row.strategy == Strategy.WEIGHTED.value
    return format_html_join(
        ", ", "{}{}", ((m["model"], f" ({m['weight']})" if is_weighted else "") for m in row.members)
    )
