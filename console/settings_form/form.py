"""A form of some settings in sections, and the differences that saving it would make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from typing_extensions import override

from console.settings_form.wording import HELP, TRUST_MODES, flat, label_of, value_in_words
from gateway.forms import GatewaySettingsForm, LinesField
from gateway.models import AGENT_SCOPES, GatewaySettings
from gateway.services import settings_values


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the form with a heading and one sentence about it."""

    title: str
    text: str
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Difference:
    label: str
    before: str
    after: str


class SectionForm(GatewaySettingsForm):
    """The settings of the given sections; the others keep their values."""

    fallback_order = LinesField(required=False)
    preferred_models = LinesField(required=False)
    alert_emails = LinesField(required=False)
    agent_scopes = forms.MultipleChoiceField(
        required=False,
        choices=[(scope, scope.replace(":", ", ")) for scope in AGENT_SCOPES],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, sections: Sequence[Section], *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.sections = sections
        chosen = [name for section in sections for name in section.names]
        self.fields = {name: self.fields[name] for name in chosen}
        for name, field in self.fields.items():
            field.label = label_of(name)
            field.help_text = HELP.get(name, "")
            if name.endswith("_usd") and self.initial.get(name) is not None:
                self.initial[name] = f"{self.initial[name].normalize():f}"
        if "guardrails_trust_mode" in self.fields:
            mode: Any = self.fields["guardrails_trust_mode"]
            mode.choices = list(TRUST_MODES.items())

    @property
    def parts(self) -> Iterator[tuple[Section, list[forms.BoundField]]]:
        """The sections with their fields, for the template."""
        for section in self.sections:
            yield section, [self[name] for name in section.names]

    @property
    def hidden_copies(self) -> Iterator[Any]:
        """The sent values as hidden fields, for the form that confirms them."""
        for field in self:
            yield field.as_hidden()

    @override
    def clean(self) -> dict[str, Any]:
        if "guardrails_trust_mode" in self.fields:
            return super().clean()
        return self.cleaned_data


def differences(before: Mapping[str, Any], row: GatewaySettings) -> list[Difference]:
    """Returns what saving `row` would change of the settings `before`, as `settings_values` has them."""
    return differences_between(before, settings_values(row))


def differences_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    old, new = flat(before), flat(after)
    return [
        Difference(label_of(name), value_in_words(name, old.get(name)), value_in_words(name, value))
        for name, value in new.items()
        if value != old.get(name)
    ]
