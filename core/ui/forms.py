"""Shows what the API and its serializers refuse in the forms of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core.errors import ApplicationError


def refuse(form: forms.Form, error: ApplicationError) -> None:
    """Shows an error of the API at the field that it names, or above the form."""
    path = next(iter(error.details or {}), "")
    _add(form, path, error.message.removeprefix(f"{path}: "))


def show_errors(form: forms.Form, errors: Mapping[str, Any]) -> None:
    """Shows the errors of a serializer, each at its field or above the form."""
    for name, problem in errors.items():
        _add(form, name, error_texts(problem))


def error_texts(problem: Any) -> list[str]:
    """Returns the messages of a serializer's error, with the names of fields inside of objects and lists."""
    if isinstance(problem, Mapping):
        return [f"{name}: {text}" for name, inner in problem.items() for text in error_texts(inner)]
    if isinstance(problem, list):
        return [text for inner in problem for text in error_texts(inner)]
    return [str(problem)]


def _add(form: forms.Form, path: str, problem: str | list[str]) -> None:
    name = path.partition(".")[0]
    form.add_error(name if name in form.fields else None, problem)
