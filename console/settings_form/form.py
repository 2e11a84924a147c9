"""A form built from the declarations of settings, and the differences that saving it would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator, validate_email

from core.caller_limits import MAX_BUDGET_USD, MONEY_COLUMN_DIGITS, MONEY_COLUMN_PLACES
from core.ui.formats import money, number
from gateway.project_settings.declaration import Kind, Section, Setting, parts
from gateway.project_settings.guardrails import TrustMode
from gateway.project_settings.settings import ProjectSettings
from gateway.project_settings.values import by_part, stored
from gateway.services import unknown_provider

# The settings that name one model. Their fields offer those that the project can call.
MODELS = frozenset({"judge_model", "agent_model"})
MAX_OFFERED_MODELS = 500


@dataclass(frozen=True, slots=True)
class Difference:
    label: str
    before: str
    after: str


class LinesField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 3})

    def __init__(self, one: Setting, check: Callable[[str], None] | None = None, **options: Any) -> None:
        super().__init__(required=False, **options)
        self._setting, self._check = one, check

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> list[str]:
        lines = [line.strip() for line in super().clean(value).splitlines()]
        names = [line for line in lines if line]
        max_names, max_characters = self._setting.maximum, self._setting.item_maximum or 0
        if len(names) > max_names:
            raise ValidationError(f"At most {max_names} names are allowed.", code="too_many")
        if len(set(names)) != len(names):
            raise ValidationError("A name occurs twice.", code="repeated")
        if any(len(name) > max_characters for name in names):
            raise ValidationError(f"A name has at most {max_characters} characters.", code="too_long")
        if self._check is not None:
            for name in names:
                self._check(name)
        return names


class SectionForm(forms.Form):
    """The settings of the given sections; all others keep their values."""

    _SHOWN_WHEN: ClassVar[Mapping[str, tuple[str, Sequence[str]]]] = {
        "fallback_order": ("fallback_enabled", ("True",)),
        "retry_max_attempts": ("retry_enabled", ("True",)),
        "rate_limit_rpm": ("rate_limit_enabled", ("True",)),
        "rate_limit_tpm": ("rate_limit_enabled", ("True",)),
    }

    def __init__(
        self,
        sections: Sequence[Section],
        settings: ProjectSettings,
        project_id: UUID,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        values = stored(settings)
        self.before, self._project_id = values, project_id
        self.sections = [(section, settings_of(section)) for section in sections]
        initial = {field_name(path): value for path, value in by_part(values).items()}
        super().__init__(data, initial=initial)
        self._settings = [one for _, found in self.sections for one in found]
        of_guardrails = [one.path for one in self._settings if one.path.startswith("guardrails.")]
        looks = ("guardrails_trust_mode", (TrustMode.MONITOR.value, TrustMode.ENFORCE.value))
        self.shown_when = {**self._SHOWN_WHEN, **{field_name(path): looks for path in of_guardrails}}
        self.shown_when.pop("guardrails_trust_mode", None)
        self.fields = {field_name(one.path): form_field(one) for one in self._settings}

    @property
    def parts(self) -> Iterator[tuple[Section, list[forms.BoundField]]]:
        for section, settings in self.sections:
            yield section, [self[field_name(one.path)] for one in settings]

    @property
    def hidden_copies(self) -> Iterator[Any]:
        for field in self:
            yield field.as_hidden()

    @property
    def values(self) -> dict[str, Any]:
        """The sent values by setting; an object has all its values. Requires a valid form."""
        found: dict[str, Any] = {}
        for one in self._settings:
            value = self.cleaned_data[field_name(one.path)]
            holder = one.path.rpartition(".")[0]
            target = found.setdefault(holder, dict(self.before[holder])) if holder else found
            # An empty choice stands for the default.
            target[one.name] = one.default if one.kind is Kind.CHOICE and not value else value
        return found

    @property
    def after(self) -> dict[str, Any]:
        return {**self.before, **stored(self.values)}

    def clean_fallback_order(self) -> Any:
        names = self.cleaned_data["fallback_order"]
        if problem := unknown_provider(self._project_id, names, self.before["fallback_order"]):
            raise ValidationError(problem)
        return names

    def clean(self) -> dict[str, Any]:
        for one in self._settings:
            name = field_name(one.path)
            problem = one.problem(self.cleaned_data[name]) if one.problem and name in self.cleaned_data else ""
            if problem:
                self.add_error(name, problem)
        return self.cleaned_data


def settings_of(section: Section) -> list[Setting]:
    return [one for one in parts(ProjectSettings) if one.section is section]


def field_name(path: str) -> str:
    return path.replace(".", "_")


def form_field(one: Setting) -> forms.Field:
    field = _FIELDS[one.kind](one)
    field.label, field.help_text = one.label, _hint(one)
    if one.path in MODELS:
        field.widget.attrs["list"] = "models"
    return field


def _hint(one: Setting) -> str:
    ending = ""
    if one.kind in (Kind.NAMES, Kind.EMAILS):
        ending = "One a line."
    elif one.is_nullable:
        ending = "Empty for no limit."
    return f"{one.hint} {ending}".strip()


def _number(one: Setting) -> dict[str, Any]:
    return {"required": not one.is_nullable, "min_value": one.minimum, "max_value": one.maximum}


_FIELDS: Mapping[Kind, Callable[[Setting], forms.Field]] = {
    Kind.BOOLEAN: lambda _: forms.BooleanField(required=False),
    Kind.INTEGER: lambda one: forms.IntegerField(**_number(one)),
    Kind.NUMBER: lambda one: forms.FloatField(**_number(one)),
    Kind.MONEY: lambda _: forms.DecimalField(
        required=False,
        min_value=0,
        max_value=MAX_BUDGET_USD,
        max_digits=MONEY_COLUMN_DIGITS,
        decimal_places=MONEY_COLUMN_PLACES,
    ),
    Kind.TEXT: lambda one: forms.CharField(required=False, max_length=one.maximum),
    Kind.URL: lambda one: forms.CharField(
        required=False, max_length=one.maximum, validators=[URLValidator(schemes=["http", "https"])]
    ),
    Kind.CHOICE: lambda one: forms.ChoiceField(required=False, choices=list(one.choices.items())),
    Kind.NAMES: LinesField,
    Kind.EMAILS: lambda one: LinesField(one, validate_email),
    Kind.CHOICES: lambda one: forms.MultipleChoiceField(
        required=False, choices=list(one.choices.items()), widget=forms.CheckboxSelectMultiple
    ),
}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    old, new = by_part(before), by_part(after)
    return [
        Difference(one.label, value_in_words(one, old.get(one.path)), value_in_words(one, new[one.path]))
        for one in parts(ProjectSettings)
        if one.path in new and new[one.path] != old.get(one.path)
    ]


def value_in_words(one: Setting, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == "":
        return "no limit" if one.is_nullable else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if one.kind is Kind.MONEY:
        return money(Decimal(str(value)))
    if one.kind is Kind.CHOICE:
        return one.choices.get(value, str(value))
    return number(value) if isinstance(value, int | float) else str(value)
