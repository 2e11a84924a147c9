from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
from django.core.validators import URLValidator
from rest_framework import serializers

from core.caller_limits import MAX_BUDGET_USD
from core.wire.fields import MoneyField, NameListField, NumberField
from core.wire.serializers import StrictSerializer
from gateway.project_settings.declaration import Kind, Setting, declared
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.project_settings.settings import ProjectSettings

Field = serializers.Field[Any, Any, Any, Any]


def api_fields(struct: type[msgspec.Struct]) -> dict[str, Field]:
    return {one.name: api_field(one) for one in declared(struct)}


class GuardrailsSerializer(StrictSerializer):
    def get_fields(self) -> dict[str, Field]:
        return api_fields(GuardrailSettings)


class ValuesSerializer(StrictSerializer):
    """Some or all settings by name."""

    def get_fields(self) -> dict[str, Field]:
        return api_fields(ProjectSettings)


_OBJECTS: dict[str, type[serializers.Serializer[Any]]] = {"guardrails": GuardrailsSerializer}


def api_field(one: Setting) -> Field:
    default = one.default
    options: dict[str, Any] = {
        "required": False,
        "default": (lambda: deepcopy(default)) if isinstance(default, list | dict) else default,
        "help_text": one.help,
    }
    if one.is_nullable:
        options["allow_null"] = True
    if one.problem is not None:
        options["validators"] = [_validator(one.problem)]
    return _MAKERS[one.kind](one, options)


def _validator(problem: Callable[[Any], str]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if found := problem(value):
            raise serializers.ValidationError(found)

    return check


def _text(one: Setting, options: dict[str, Any]) -> Field:
    return serializers.CharField(allow_blank=True, max_length=one.maximum, **options)


_IS_URL = URLValidator(schemes=["http", "https"])
_MAKERS: dict[Kind, Callable[[Setting, dict[str, Any]], Field]] = {
    Kind.BOOLEAN: lambda _, options: serializers.BooleanField(**options),
    Kind.INTEGER: lambda one, options: serializers.IntegerField(
        min_value=one.minimum, max_value=one.maximum, **options
    ),
    Kind.NUMBER: lambda one, options: NumberField(min_value=one.minimum, max_value=one.maximum, **options),
    Kind.MONEY: lambda _, options: MoneyField(max_value=MAX_BUDGET_USD, **options),
    Kind.TEXT: _text,
    Kind.URL: lambda one, options: _text(one, {**options, "validators": [_IS_URL, *options.get("validators", ())]}),
    Kind.CHOICE: lambda one, options: serializers.ChoiceField(choices=[*map(str, one.choices)], **options),
    Kind.NAMES: lambda one, options: NameListField(max_length=one.maximum, **options),
    Kind.EMAILS: lambda one, options: serializers.ListField(
        child=serializers.EmailField(max_length=one.item_maximum), max_length=one.maximum, **options
    ),
    Kind.CHOICES: lambda one, options: serializers.ListField(
        child=serializers.ChoiceField(choices=list(one.choices)), max_length=one.maximum, **options
    ),
    Kind.OBJECT: lambda one, options: _OBJECTS[one.name](**{**options, "default": dict}),
}
