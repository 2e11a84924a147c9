from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from django.contrib.admin.utils import lookup_field
from django.core.exceptions import FieldDoesNotExist, ObjectDoesNotExist
from django.db import models
from django.utils.safestring import SafeString

from core.ui import formats
from core.ui.marks import id_link, status

_STATES = frozenset({"status", "outcome", "verdict", "state"})
_MONEY = ("cost", "usd", "spent", "budget", "price")


def value_shown(field: models.Field[Any, Any], value: Any) -> SafeString | str | None:
    if isinstance(field, models.BooleanField):
        return answer(value)
    if isinstance(field, models.DateTimeField | models.DateField):
        return moment_or_day(value)
    if value is None:
        return formats.NONE if isinstance(field, models.DecimalField | models.JSONField) else None
    if isinstance(field, models.DecimalField):
        return formats.money(value) if any(part in field.name for part in _MONEY) else formats.number(float(value))
    if isinstance(field, models.UUIDField) and field.primary_key:
        return id_link("", value)
    if field.name in _STATES and isinstance(value, str) and value:
        return status(value)
    if isinstance(field, models.JSONField) and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or formats.NONE
    return None


def answer(value: object) -> SafeString:
    if value is None:
        return SafeString(formats.NONE)
    return status("yes", "good") if value else SafeString('<span class="muted">no</span>')


def moment_or_day(value: date | datetime | None) -> SafeString | str:
    return formats.moment(value) if value is None or isinstance(value, datetime) else formats.day(value)


class Cell:
    def __init__(self, name: str, label: str, order: Any, show: Callable[[Any], Any]) -> None:
        self.__name__ = name
        self.short_description = label
        self.admin_order_field = order
        self._show = show

    def __call__(self, row: Any) -> Any:
        return self._show(row)


def cell_of(owner: Any, name: str) -> Cell | str:
    method = getattr(owner, name, None)
    if method is not None:
        if not getattr(method, "boolean", False):
            return name
        label = getattr(method, "short_description", name.replace("_", " "))
        return Cell(name, label, getattr(method, "admin_order_field", None), lambda row: answer(method(row)))
    try:
        field = owner.model._meta.get_field(name)
    except FieldDoesNotExist:
        return name
    if not isinstance(field, models.Field) or field.remote_field is not None:
        return name
    return Cell(name, str(field.verbose_name), name, lambda row: _shown_or_plain(field, row))


def _shown_or_plain(field: models.Field[Any, Any], row: Any) -> Any:
    value = getattr(row, field.attname)
    shown = value_shown(field, value)
    if shown is not None:
        return shown
    return getattr(row, f"get_{field.name}_display")() if field.choices else value


def contents(readonly: Any) -> Any:
    name = readonly.field["field"]
    try:
        field, method, value = lookup_field(name, readonly.form.instance, readonly.model_admin)
    except (AttributeError, ValueError, ObjectDoesNotExist):
        return readonly.contents()
    if field is None:
        return answer(value) if getattr(method, "boolean", False) else readonly.contents()
    shown = value_shown(field, value) if field.remote_field is None else None
    return readonly.contents() if shown is None else shown
