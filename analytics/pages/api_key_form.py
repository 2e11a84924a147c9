"""The form of a new API key: its scopes, its expiry, its limits, and what it may call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from typing_extensions import override

from core.key_serializers import NewApiKeySerializer
from core.keys import LIMIT_FIELDS
from core.models import NAME_CHARACTERS
from core.scopes import DESCRIPTIONS, USUAL_SCOPES

_BUDGETS = ("monthly_budget_usd", "total_budget_usd")
_LISTS = ("allowed_models", "allowed_providers")


def _lines(label: str, help_text: str) -> forms.CharField:
    return forms.CharField(
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
    name = forms.CharField(max_length=NAME_CHARACTERS, help_text="Of the application that will have it.")
    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {sentence}") for scope, sentence in DESCRIPTIONS.items()],
        widget=forms.CheckboxSelectMultiple,
        initial=list(USUAL_SCOPES),
    )
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

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError("Must be in the future.")
        return expires_at

    @override
    def clean(self) -> dict[str, Any]:
        """Checks the limits by the rules of the API."""
        values = {name: value for name, value in self.cleaned_data.items() if name not in ("expires_at", "project")}
        checked = NewApiKeySerializer(data=_body(values))
        if not checked.is_valid():
            for field, problem in checked.errors.items():
                if field in self.fields and field not in self.errors:
                    self.add_error(field, _first_text(problem))
            return self.cleaned_data
        return {**checked.validated_data, "expires_at": self.cleaned_data.get("expires_at")}


def _body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the form's values as the API's body has them."""
    body = dict(values)
    for name in (*LIMIT_FIELDS, *_LISTS, "metadata"):
        value = body.get(name)
        if name in _LISTS:
            body[name] = [line.strip() for line in (value or "").splitlines() if line.strip()]
        elif name == "metadata":
            pairs = (line.partition("=") for line in (value or "").splitlines() if line.strip())
            body[name] = {key.strip(): text.strip() for key, _, text in pairs}
        elif name in _BUDGETS and value is not None:
            body[name] = float(value)
    return body


def _first_text(problem: Any) -> str:
    """Returns the first message of a serializer's error, which may be nested."""
    while isinstance(problem, Mapping | list | tuple):
        problem = next(iter(problem.values() if isinstance(problem, Mapping) else problem))
    return str(problem)
