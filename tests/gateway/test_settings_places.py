"""Every setting of a project is in each place that CONTRIBUTING, 'Adding a gateway setting', names."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from django.core.exceptions import ValidationError

from gateway.admin import GatewaySettingsAdmin
from gateway.forms import GUARDRAIL_FIELDS, PREFIX, GatewaySettingsForm
from gateway.models import validate_guardrails
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.serializers import GuardrailsSerializer, SettingsSerializer
from gateway.services import FIELDS

GUARDRAILS = tuple(field.name for field in msgspec.structs.fields(GuardrailSettings))
LISTS = tuple(field.name for field in msgspec.structs.fields(GuardrailSettings) if field.default == ())


def assert_same(place: str, found: Iterable[str], expected: Iterable[str]) -> None:
    found, expected = set(found), set(expected)
    assert found == expected, f"{place}: missing {sorted(expected - found)}, surplus {sorted(found - expected)}"


def test_setting__every_column__is_a_field_of_the_api() -> None:
    fields = SettingsSerializer().fields.keys() - {"project_id", "warnings"}
    assert_same("SettingsSerializer of gateway/serializers.py", fields, FIELDS)


def test_setting__every_column__is_in_the_admins_form() -> None:
    shown = [str(name) for _, options in GatewaySettingsAdmin.fieldsets for name in options["fields"]]
    expected = {"project", *FIELDS, *GUARDRAIL_FIELDS} - {"guardrails"}
    assert_same("fieldsets of GatewaySettingsAdmin in gateway/admin.py", shown, expected)


def test_guardrail__every_field__is_a_field_of_the_api() -> None:
    assert_same("GuardrailsSerializer of gateway/serializers.py", GuardrailsSerializer().fields.keys(), GUARDRAILS)


def test_guardrail__every_field__is_in_the_admins_form() -> None:
    declared = [name.removeprefix(PREFIX) for name in GatewaySettingsForm.declared_fields if name.startswith(PREFIX)]
    assert_same("GatewaySettingsForm of gateway/forms.py", declared, GUARDRAILS)


@pytest.mark.parametrize("name", LISTS)
def test_guardrail__list_with_a_repeated_name__is_refused_by_the_model(name: str) -> None:
    try:
        validate_guardrails({name: ["same", "same"]})
    except ValidationError as error:
        assert error.messages == [f"{name}: A name stands there twice."]
    else:
        pytest.fail(f"validate_guardrails of gateway/models.py takes any list as {name}: add it to the names there")
