from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.utils import timezone

from core.keys.serializers import ApiKeyChangeSerializer, NewApiKeySerializer
from core.keys.services import CHANGEABLE_FIELDS
from core.models import NAME_CHARACTERS, ApiKey, Team
from core.rights.scopes import DESCRIPTIONS, GATEWAY, MANAGE
from core.wire.serializers import BodySerializer

_BUDGETS = ("monthly_budget_usd", "total_budget_usd")
_LISTS = ("allowed_models", "allowed_providers")


_ADMINISTRATION = "Only for what administers the project:"


class ScopesField(forms.MultipleChoiceField):
    """A key without a choice gets the scope `gateway` only."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self) -> None:
        choices = {scope: (scope, f"{scope}: {sentence}") for scope, sentence in DESCRIPTIONS.items()}
        manage = choices.pop(MANAGE)
        super().__init__(
            choices=[*choices.values(), (_ADMINISTRATION, [manage])],
            initial=[GATEWAY],
            required=False,
            help_text=f"None ticked: {GATEWAY}.",
        )

    def clean(self, value: Any) -> list[str]:
        return super().clean(value) or [GATEWAY]


class LinesField(forms.CharField):
    """Normalizes the line ends that browsers send, and drops empty lines."""

    def to_python(self, value: Any) -> str:
        lines = (line.strip() for line in (super().to_python(value) or "").splitlines())
        return "\n".join(line for line in lines if line)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(initial) != self.to_python(data)


def _lines(label: str, help_text: str) -> LinesField:
    return LinesField(
        required=False,
        label=label,
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )


def _number(label: str) -> forms.IntegerField:
    return forms.IntegerField(required=False, label=label, min_value=1, help_text="Empty for any number.")


def _budget(label: str) -> forms.DecimalField:
    return forms.DecimalField(required=False, label=label, min_value=0, help_text="In US dollars. Empty for none.")


class NewKeyForm(forms.Form):
    serializer: ClassVar[type[BodySerializer]] = NewApiKeySerializer

    name = forms.CharField(max_length=NAME_CHARACTERS, help_text="Of the application that will have it.")
    scopes = ScopesField()
    expires_at = forms.DateTimeField(
        required=False,
        label="Expires",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="Empty for never.",
    )
    monthly_budget_usd = _budget("Budget per month")
    total_budget_usd = _budget("Budget in all")
    rate_limit_rpm = _number("Requests per minute")
    rate_limit_tpm = _number("Tokens per minute")
    max_concurrent_requests = _number("Requests at the same time")
    allowed_models = _lines(
        "Models that it may call", "Patterns such as gpt-* or anthropic/*, one a line. Empty for all."
    )
    allowed_providers = _lines("Providers that it may call", "Patterns, one a line. Empty for all.")
    metadata = _lines("Metadata", "Recorded with each request: name = value, one a line.")
    team_id = forms.TypedChoiceField(
        required=False,
        label="Team",
        coerce=int,
        empty_value=None,
        help_text="Whose budget and rates it shares. What it has spent stays with the team that it was in then.",
    )

    def __init__(
        self, project_id: UUID, given: Mapping[str, Any] | None = None, initial: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(given, initial=dict(initial or {}))
        teams = Team.objects.for_project(project_id).values_list("pk", "name")
        self.fields["team_id"].choices = [("", "no team"), *teams]  # type: ignore[attr-defined]

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        is_given = "expires_at" in self.changed_data
        if is_given and expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError("Must be in the future.")
        return expires_at

    def clean(self) -> dict[str, Any]:
        values = self.values()
        # The form has checked the expiry, whose text has no time zone.
        expiry = {"expires_at": values.pop("expires_at")} if "expires_at" in values else {}
        checked = self.serializer(data=_body(values))
        if not checked.is_valid():
            for field, problem in checked.errors.items():
                if field in self.fields and field not in self.errors:
                    self.add_error(field, _first_text(problem))
            return self.cleaned_data
        return {**checked.validated_data, **expiry}

    def values(self) -> dict[str, Any]:
        """Returns the values by API field name."""
        return dict(self.cleaned_data)


class ChangeKeyForm(NewKeyForm):
    """Gives only the changed fields, so that an expired key's other settings can still be changed."""

    serializer = ApiKeyChangeSerializer

    def __init__(self, row: ApiKey, given: Mapping[str, Any] | None = None) -> None:
        super().__init__(row.project_id, given, _initial(row))
        del self.fields["scopes"]

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name in self.changed_data}


def _initial(row: ApiKey) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(row, name) for name in CHANGEABLE_FIELDS}
    for name in _BUDGETS:
        if found[name] is not None:
            # The column's ten decimal places are cut to those that say anything.
            found[name] = Decimal(f"{found[name].normalize():f}")
    for name in _LISTS:
        found[name] = "\n".join(found[name])
    found["metadata"] = "\n".join(f"{name} = {text}" for name, text in row.metadata.items())
    if row.expires_at is not None:
        # The field has minutes alone.
        found["expires_at"] = row.expires_at.replace(second=0, microsecond=0)
    return found


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    body = dict(values)
    for name, value in values.items():
        if name in _LISTS:
            body[name] = value.splitlines()
        elif name == "metadata":
            pairs = (line.partition("=") for line in value.splitlines())
            body[name] = {key.strip(): text.strip() for key, _, text in pairs}
        elif name in _BUDGETS and value is not None:
            body[name] = float(value)
    return body


def _first_text(problem: Any) -> str:
    while isinstance(problem, Mapping | list | tuple):
        problem = next(iter(problem.values() if isinstance(problem, Mapping) else problem))
    return str(problem)
