"""The page of model groups: all groups of the project, and a form that makes, changes and deletes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html_join

from core.errors import ApplicationError, NotFoundError
from core.roles import Right
from core.ui.formats import moment
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table
from gateway.model_groups.services import change_group, create_group, delete_group, get_group, list_groups
from gateway.models import ModelGroupRow
from gateway.project_settings.model_groups import Strategy
from gateway.tables.group import MAX_WEIGHT, MEMBER_CHARACTERS, NAME_CHARACTERS, validate_group_name, validate_members

_STRATEGIES = (
    (Strategy.ORDERED.value, "In order: the first model that answers"),
    (Strategy.WEIGHTED.value, "By weight: each session keeps the model that it drew"),
)


class MembersField(forms.CharField):
    """Models, one a line, each with its weight behind it; 1 where none stands there."""

    widget = forms.Textarea

    def clean(self, value: Any) -> list[dict[str, Any]]:
        lines = [line.split() for line in super().clean(value).splitlines() if line.strip()]
        members = [_member(words) for words in lines]
        validate_members(members)
        return members


def _member(words: list[str]) -> dict[str, Any]:
    """Returns the member of a line's words. Raises ValidationError."""
    model, *rest = words
    if len(rest) > 1 or (rest and not (rest[0].isdecimal() and int(rest[0]) <= MAX_WEIGHT)):
        raise forms.ValidationError(f"{model}: a model and a weight from 0 to {MAX_WEIGHT} are expected in a line.")
    if len(model) > MEMBER_CHARACTERS:
        raise forms.ValidationError(f"A model's name has at most {MEMBER_CHARACTERS} characters.")
    return {"model": model, "weight": int(rest[0]) if rest else 1}


class GroupForm(forms.Form):
    """The form of a group; the name of one that is there does not change."""

    name = forms.CharField(
        max_length=NAME_CHARACTERS,
        validators=[validate_group_name],
        label="Name",
        help_text="What requests send as model. No /, not the name of a provider.",
    )
    strategy = forms.ChoiceField(choices=_STRATEGIES, label="Order")
    members = MembersField(
        label="Models", help_text="One a line, the weight behind it: openai/gpt-4o-mini 3. Weight 0: only a fallback."
    )

    def __init__(self, row: ModelGroupRow | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if row is not None:
            del self.fields["name"]
            self.initial = {
                "strategy": row.strategy,
                "members": "\n".join(f"{member['model']} {member['weight']}" for member in row.members),
            }


@register_page
class ModelGroupsPage(Page):
    route = "model-groups/"
    name = "model_groups"
    title = "Model groups"
    template = "model_groups/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _chosen(visit)
        return _shown(visit, row, GroupForm(row))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        row = _chosen(visit)
        if visit.request.POST.get("action") == "delete" and row is not None:
            delete_group(project_id=visit.project.pk, name=row.name, actor=visit.actor)
            messages.success(visit.request, f"{row.name} was deleted: requests that name it get 404.")
            return HttpResponseRedirect(visit.link(self.name))
        return self._save(visit, row)

    def _save(self, visit: Visit, row: ModelGroupRow | None) -> HttpResponseBase:
        form = GroupForm(row, visit.request.POST)
        if form.is_valid():
            save = create_group if row is None else change_group
            name = row.name if row is not None else form.cleaned_data["name"]
            values = {field: form.cleaned_data[field] for field in ("strategy", "members")}
            try:
                save(project_id=visit.project.pk, name=name, actor=visit.actor, **values)
            except ApplicationError as error:
                field = next(iter(error.details or {}), None)
                form.add_error(field if field in form.fields else None, error.message)
            else:
                messages.success(visit.request, f"{name}: saved, and known to every worker within a second.")
                return HttpResponseRedirect(visit.link(self.name))
        return self.render(visit, **_shown(visit, row, form))


def _chosen(visit: Visit) -> ModelGroupRow | None:
    """Returns the group that the address names, None for a new one. Raises Http404."""
    name = visit.request.GET.get("group", "")
    try:
        return get_group(visit.project.pk, name) if name else None
    except NotFoundError as error:
        raise Http404(error.message) from None


def _shown(visit: Visit, row: ModelGroupRow | None, form: GroupForm) -> dict[str, Any]:
    may_change = visit.may(Right.ADMINISTER)
    return {
        "table": _table(visit, may_change=may_change),
        "group": row,
        "form": form if may_change else None,
        "list_address": visit.link("model_groups"),
    }


def _table(visit: Visit, *, may_change: bool) -> Table:
    return Table(
        caption="Model groups of this project",
        columns=[
            Column("name", "Group", lambda row: row.name),
            Column("strategy", "Order", lambda row: row.strategy),
            Column("members", "Models and weights", _members),
            Column("changed", "Changed", lambda row: moment(row.updated_at)),
        ],
        rows=list(list_groups(visit.project.pk)),
        key=(lambda row: visit.link("model_groups", group=row.name)) if may_change else None,
        empty=Empty("No model group yet: a group is a name of your own that requests send as model."),
    )


def _members(row: ModelGroupRow) -> Any:
    is_weighted = row.strategy == Strategy.WEIGHTED.value
    return format_html_join(
        ", ", "{}{}", ((m["model"], f" ({m['weight']})" if is_weighted else "") for m in row.members)
    )
