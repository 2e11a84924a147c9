from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from rest_framework import serializers

from core.errors import ApplicationError
from core.wire.fields import MONEY_DIGITS, MONEY_PLACES, MoneyField

T = TypeVar("T")
Given = TypeVar("Given", bound=serializers.Serializer[Any])

_PLAIN: Mapping[type[serializers.Field[Any, Any, Any, Any]], type[forms.Field]] = {
    serializers.ChoiceField: forms.ChoiceField,
    serializers.CharField: forms.CharField,
    serializers.BooleanField: forms.BooleanField,
    serializers.IntegerField: forms.IntegerField,
    serializers.FloatField: forms.FloatField,
}
_BOUNDS = ("max_length", "min_value", "max_value", "choices")


class SerializerForm(forms.Form, Generic[Given]):
    """A form that `serializer` validates: `given` is the valid serializer, `values` its values.

    `words` has the label and the help of the fields that `form_field` makes; the class declares the others. `record`
    fills in the fields.
    """

    serializer: ClassVar[Any]
    given: Given
    words: ClassVar[Mapping[str, str | tuple[str, str]]] = {}

    def __init__(self, record: Any = None, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        declared = self.serializer().fields
        for name, words in self.words.items():
            label, help_text = (words, "") if isinstance(words, str) else words
            self.fields[name] = form_field(declared[name], label, help_text)
        self.order_fields(self.field_order)
        self.values: Mapping[str, Any] = {}
        if record is not None:
            self.initial = {**self.initial_of(record), **self.initial}

    def initial_of(self, record: Any) -> dict[str, Any]:
        return {name: shown_value(getattr(record, name)) for name in self.fields}

    def body(self) -> dict[str, Any]:
        return {name: float(one) if isinstance(one, Decimal) else one for name, one in self.cleaned_data.items()}

    def field_of(self, path: str) -> str:
        return path.partition(".")[0]

    def clean(self) -> dict[str, Any]:
        if not self.errors:
            self.given = self.serializer(data=self.body())
            if self.given.is_valid():
                self.values = self.given.validated_data
            else:
                show_errors(self, self.given.errors)
        return self.cleaned_data


def form_field(of: serializers.Field[Any, Any, Any, Any], label: str, help_text: str = "") -> forms.Field:
    words: dict[str, Any] = {"label": label, "help_text": help_text, "required": of.required and not of.allow_null}
    if isinstance(of, MoneyField):
        return forms.DecimalField(
            min_value=0, max_value=of.max_value, max_digits=MONEY_DIGITS, decimal_places=MONEY_PLACES, **words
        )
    made = next(one for kind, one in _PLAIN.items() if isinstance(of, kind))
    bounds = {name: value for name in _BOUNDS if (value := getattr(of, name, None)) is not None}
    return made(**words, **bounds)


def shown_value(value: Any) -> Any:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def saved(form: forms.BaseForm, save: Callable[[], T]) -> T | None:
    """Returns what `save` returns; None if it or the form refuses a value, which the form then shows."""
    if form.is_valid():
        try:
            return save()
        except ApplicationError as error:
            refuse(form, error)
    return None


def refuse(form: forms.BaseForm, error: ApplicationError, fields_of_codes: Mapping[str, str] = {}) -> None:
    """Shows an API error at the field of its code, else at the field it names, else at that of the empty code, else
    above the form."""
    path = next(iter(error.details or {}), "")
    named = fields_of_codes.get(error.code) or path or fields_of_codes.get("", "")
    _add(form, named, error.message.removeprefix(f"{path or named}: "))


def show_errors(form: forms.BaseForm, errors: Mapping[str, Any]) -> None:
    for name, problem in errors.items():
        _add(form, name, error_texts(problem))


def error_texts(problem: Any) -> list[str]:
    if isinstance(problem, Mapping):
        return [f"{name}: {text}" for name, inner in problem.items() for text in error_texts(inner)]
    if isinstance(problem, list):
        return [text for inner in problem for text in error_texts(inner)]
    return [str(problem)]


def _add(form: forms.BaseForm, path: str, problem: str | list[str]) -> None:
    name = form.field_of(path) if isinstance(form, SerializerForm) else path.partition(".")[0]
    form.add_error(name if name in form.fields else None, problem)
