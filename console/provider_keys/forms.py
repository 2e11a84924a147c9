from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django import forms

from core.errors import ValidationError
from integrations.access.checked_deployments import (
    NUMBERS,
    lines_of_models,
    lines_of_prices,
    models_in_lines,
    prices_in_lines,
)
from integrations.access.completeness import SECRET_LENGTH, SERVICE_ACCOUNT_LENGTH
from integrations.access.credentials import masked_headers
from integrations.models import ProviderIntegration
from integrations.registry import traits_of
from integrations.services import Default, IntegrationChange

T = TypeVar("T")

_LABELS = {
    "api_key": "API key",
    "access_key_id": "Access key id",
    "secret_access_key": "Secret access key",
    "session_token": "Session token",
    "api_version": "API version",
    "deployment": "Deployment",
    "region": "Region",
    "project": "Google Cloud project",
    "location": "Location",
    "responses_models": "Models that get tools by the Responses API",
    "credentials": "ambient: the key of this machine's role",
    "base_url": "Address of the service",
}
_NUMBERS = {
    "weight": ("Weight", "The share of requests among those of the same priority; 0: only when the others fail."),
    "priority": ("Priority", "The lowest number comes first."),
    "rpm": ("Requests a minute", "The vendor's own limit; empty: none."),
    "tpm": ("Tokens a minute", "The vendor's own limit; empty: none."),
}
_OBJECTS = {
    "default_parameters": ("Parameters by default", 'Where a request leaves them out: {"temperature": 0.2}.'),
    "forced_parameters": ("Forced parameters", "Whatever a request says; null takes a parameter out."),
    "extra_headers": (
        "Headers for the provider",
        'Sent with every request: {"x-team": "search"}. Stored encrypted; **** keeps the stored value.',
    ),
}
_DEFAULTS = {"weight": 1, "priority": 0}
_KEPT = "Leave it empty to keep the stored one."


class ProviderKeyForm(forms.Form):
    """`row` is None for a new integration. Secrets are never rendered."""

    def __init__(self, provider: str, row: ProviderIntegration | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        traits = traits_of(provider)
        self.secrets = ("api_key", *traits.secret_extra, *traits.optional_extra)
        self.option_names = tuple(dict.fromkeys((*traits.required_options, *traits.options)))
        help_text = _KEPT if row else ""
        for name in self.secrets:
            self.fields[name] = _secret(name, help_text)
        if traits.service_account:
            self.fields["api_key"].help_text = f"An API key, or the JSON of a service account. {help_text}".strip()
        elif traits.secret_extra:
            self.fields["api_key"].help_text = f"Or the access keys below. {help_text}".strip()
        elif traits.optional_secret:
            self.fields["api_key"].help_text = f"Not every such service needs one. {help_text}".strip()
        for name in self.option_names:
            self.fields[name] = forms.CharField(
                required=False,
                label=_LABELS.get(name, name.replace("_", " ")),
                initial=row.options.get(name, "") if row else "",
            )
        self.fields["base_url"] = forms.CharField(
            required=False,
            max_length=500,
            label=_LABELS["base_url"],
            initial=row.base_url if row else "",
            help_text=f"Empty for {traits.base_url}" if traits.base_url else "This provider has no address of its own.",
        )

        self._add_choice(row)
        self._add_additions(row)

    def _add_choice(self, row: ProviderIntegration | None) -> None:
        for name, (label, help_text) in _NUMBERS.items():
            least, largest = NUMBERS[name]
            initial = getattr(row, name) if row else _DEFAULTS.get(name)
            self.fields[name] = forms.IntegerField(
                required=False, label=label, help_text=help_text, min_value=least, max_value=largest, initial=initial
            )
        self.fields["models"] = _lines(
            "Models",
            "One a line, with the name of the deployment where it differs: gpt-4o = my-gpt4o. Empty: all of its kind.",
            lines_of_models(row.served_models) if row else "",
        )
        self.fields["prices"] = _lines(
            "Own prices",
            "One model a line, with dollars per million tokens of input, output, cache reads and writes: gpt-4o 2.5 10",
            lines_of_prices(row.own_prices) if row else "",
        )

    def _add_additions(self, row: ProviderIntegration | None) -> None:
        self.fields["own_account"] = forms.BooleanField(
            required=False,
            label="No other project uses this account",
            help_text="Requests may then name files, responses, vector stores and so on that were made elsewhere.",
            initial=row.own_account if row else False,
        )
        for name, (label, help_text) in _OBJECTS.items():
            stored = masked_headers(row) if row and name == "extra_headers" else getattr(row, name, None)
            self.fields[name] = _object(label, help_text, stored or {})
        self.fields["forward_headers"] = _lines(
            "Headers that are passed on",
            "Names of headers of the client, one a line. Empty: the provider's own list; a dash: none.",
            "\n".join(row.forward_headers) or "-" if row and row.forward_headers is not None else "",
        )

    def clean_prices(self) -> list[dict[str, str]]:
        try:
            return prices_in_lines(self.cleaned_data["prices"])
        except ValidationError as error:
            raise forms.ValidationError(error.message) from error

    def change(self) -> IntegrationChange:
        """An empty secret keeps the stored one."""
        values = self.cleaned_data
        extra = {name: values[name] for name in self.secrets[1:] if values[name]}
        return IntegrationChange(
            secret=values["api_key"] or None,
            base_url=values["base_url"],
            own_account=values["own_account"],
            options={name: values[name] for name in self.option_names},
            secret_extra=extra or None,
            weight=_or(values["weight"], _DEFAULTS["weight"]),
            priority=_or(values["priority"], _DEFAULTS["priority"]),
            rpm=_or(values["rpm"], Default.OF_PROVIDER),
            tpm=_or(values["tpm"], Default.OF_PROVIDER),
            models=models_in_lines(values["models"]),
            prices=values["prices"],
            **{name: {} if values[name] is None else values[name] for name in _OBJECTS},
            forward_headers=_forwarded(values["forward_headers"]),
        )

    def add_problem(self, message: str, details: Any) -> None:
        for place, problems in details.items() if isinstance(details, dict) else ():
            name, _, key = place.partition(".")
            if name in self.fields:
                for problem in problems:
                    self.add_error(name, f"{key}: {problem}" if key and name in _OBJECTS else problem)
        if not self.errors:
            self.add_error(None, message)


def _lines(label: str, help_text: str, initial: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(required=False, label=label, help_text=help_text, initial=initial, widget=area)


def _object(label: str, help_text: str, initial: Mapping[str, Any]) -> forms.JSONField:
    area = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
    return forms.JSONField(required=False, label=label, help_text=help_text, initial=initial, widget=area)


def _forwarded(text: str) -> list[str] | Default:
    names = text.split()
    return Default.OF_PROVIDER if not names else [] if names == ["-"] else names


def _or(value: int | None, default: T) -> int | T:
    return default if value is None else value


def _secret(name: str, help_text: str) -> forms.CharField:
    length = SERVICE_ACCOUNT_LENGTH if name == "api_key" else SECRET_LENGTH
    return forms.CharField(
        required=False,
        label=_LABELS.get(name, name.replace("_", " ")),
        max_length=length,
        help_text=help_text,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )
