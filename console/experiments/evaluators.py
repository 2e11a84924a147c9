from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms

from analytics.evaluators.selectors import list_evaluators
from analytics.models import Evaluator
from analytics.models.evaluators import EvaluatorState
from gateway.experiments.evaluators import ExperimentEvaluator

_PERCENT = 100
_NOT_REQUIRED, _MUST_PASS, _MIN_RATE = "not-required", "must-pass", "min-rate="


class EvaluatorForm(forms.Form):
    use = forms.BooleanField(required=False)
    version = forms.IntegerField(required=False, min_value=1, label="Version")
    required = forms.BooleanField(required=False, label="Required")
    must_pass = forms.BooleanField(required=False, label="Must pass")
    min_rate = forms.FloatField(
        required=False,
        min_value=0,
        max_value=_PERCENT,
        label="Share of good answers (%)",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )

    def __init__(self, row: Evaluator, data: Mapping[str, Any] | None, initial: Mapping[str, Any]) -> None:
        prefix = _prefix(row)
        own = {name: initial.get(f"{prefix}-{name}") for name in self.base_fields}
        super().__init__(data, prefix=prefix, initial=own)
        newest: Any = row
        self.evaluator_id = row.pk
        self.fields["use"].label = row.name
        self.fields["version"].widget.attrs["placeholder"] = f"{newest.newest}, the newest"
        for name, field in self.fields.items():
            if name != "use":
                field.widget.attrs["aria-label"] = f"{field.label} of {row.name}"

    def body(self) -> dict[str, Any]:
        data = self.cleaned_data
        rate = data["min_rate"]
        return {
            "evaluator_id": str(self.evaluator_id),
            "version": data["version"],
            "required": data["required"],
            "must_pass": data["must_pass"],
            "min_rate": None if rate is None else rate / _PERCENT,
        }


def evaluator_rows(project_id: UUID) -> list[Evaluator]:
    return list(list_evaluators(project_id).filter(state=EvaluatorState.ACTIVE))


def initial_evaluators(rows: Iterable[Evaluator], given: Sequence[str]) -> dict[str, Any]:
    """Returns the rows' initial values by form field. Each text is an evaluator's id or name, then optionally `@` with
    a version, then `:not-required`, `:must-pass` or `:min-rate=0.9`."""
    chosen = {name: (version, flags) for name, version, flags in map(_read, given)}
    found: dict[str, Any] = {}
    for row in rows:
        version, flags = chosen.get(str(row.pk), chosen.get(row.name, ("", [])))
        rates = [flag.removeprefix(_MIN_RATE) for flag in flags if flag.startswith(_MIN_RATE)]
        values = {
            "use": str(row.pk) in chosen or row.name in chosen,
            "version": version,
            "required": _NOT_REQUIRED not in flags,
            "must_pass": _MUST_PASS in flags,
            "min_rate": _percent(rates[0]) if rates else "",
        }
        found |= {f"{_prefix(row)}-{name}": value for name, value in values.items()}
    return found


def in_address(evaluator: ExperimentEvaluator) -> str:
    flags = [
        *([] if evaluator.required else [_NOT_REQUIRED]),
        *([_MUST_PASS] if evaluator.must_pass and evaluator.min_rate is None else []),
        *([] if evaluator.min_rate is None else [f"{_MIN_RATE}{evaluator.min_rate:g}"]),
    ]
    return ":".join([f"{evaluator.evaluator_id}@{evaluator.number}", *flags])


def _read(text: str) -> tuple[str, str, list[str]]:
    first, *flags = text.split(":")
    name, _, version = first.rpartition("@")
    return (name, version, flags) if name and version.isdecimal() else (first, "", flags)


def _percent(text: str) -> str:
    try:
        return f"{float(text) * _PERCENT:g}"
    except ValueError:
        return text


def _prefix(row: Evaluator) -> str:
    return f"evaluator-{row.pk}"
