from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from core.errors import ValidationError
from integrations.models import MAX_PRIORITY, MAX_VENDOR_LIMIT, MAX_WEIGHT, NAME_LENGTH
from integrations.pricing.entries import MAX_PER_MILLION, PLACES
from integrations.registry import is_known

COSTS = ("input_cost_per_1m", "output_cost_per_1m", "cache_read_cost_per_1m", "cache_write_cost_per_1m")
MAX_ENTRIES = 200
MAX_MODEL_CHARACTERS = 200
# The least and the largest value of each number; null takes a limit away.
NUMBERS = {
    "weight": (0, MAX_WEIGHT),
    "priority": (0, MAX_PRIORITY),
    "rpm": (1, MAX_VENDOR_LIMIT),
    "tpm": (1, MAX_VENDOR_LIMIT),
}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_NUMBER_OF_COSTS = (2, len(COSTS))


def checked_name(name: str, provider: str) -> str:
    """An empty `name` stands for the kind itself. Raises ValidationError for invalid characters, and for another kind's
    name."""
    if not name:
        return provider
    if len(name) > NAME_LENGTH or not _NAME.fullmatch(name):
        raise ValidationError.of_field(
            "name", f"must be at most {NAME_LENGTH} of a-z, 0-9, _ and -, a letter or a digit first"
        )
    if name != provider and is_known(name):
        raise ValidationError.of_field("name", f"is the name of the provider {name}")
    return name


def checked_number(name: str, value: int) -> int:
    least, largest = NUMBERS[name]
    if not least <= value <= largest:
        raise ValidationError.of_field(name, f"must be from {least} to {largest}")
    return value


def checked_models(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    _check_entries("models", entries)
    found = []
    for number, entry in enumerate(entries):
        own = str(entry.get("deployment") or entry["model"]).strip()
        if len(own) > MAX_MODEL_CHARACTERS:
            raise ValidationError.of_field(
                f"models.{number}.deployment", f"must be at most {MAX_MODEL_CHARACTERS} characters"
            )
        found.append({"model": entry["model"].strip(), "deployment": own})
    return found


def checked_prices(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, str | None]]:
    _check_entries("prices", entries)
    return [
        {"model": entry["model"].strip(), **{name: _cost(number, entry, name) for name in COSTS}}
        for number, entry in enumerate(entries)
    ]


def models_in_lines(text: str) -> list[dict[str, str]]:
    """Parses a form's field: one model a line, `model` or `model = deployment`."""
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    return [{"model": model.strip(), "deployment": own.strip()} for model, _, own in pairs]


def lines_of_models(entries: Sequence[Mapping[str, str]]) -> str:
    pairs = [(entry["model"], entry["deployment"]) for entry in entries]
    return "\n".join(model if model == own else f"{model} = {own}" for model, own in pairs)


def prices_in_lines(text: str) -> list[dict[str, str]]:
    found = []
    for number, line in enumerate(line for line in text.splitlines() if line.strip()):
        model, *costs = line.split()
        least, largest = _NUMBER_OF_COSTS
        if not least <= len(costs) <= largest:
            raise ValidationError.of_field("prices", f"line {number + 1} needs a model and {least} to {largest} prices")
        found.append({"model": model, **dict(zip(COSTS, costs, strict=False))})
    return found


def lines_of_prices(entries: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(" ".join([entry["model"], *(entry[name] for name in COSTS if entry[name])]) for entry in entries)


def _check_entries(field: str, entries: Sequence[Mapping[str, Any]]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ValidationError.of_field(field, f"must be at most {MAX_ENTRIES}")
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        model = str(entry.get("model") or "").strip()
        if not 0 < len(model) <= MAX_MODEL_CHARACTERS:
            raise ValidationError.of_field(f"{field}.{number}.model", f"must be 1 to {MAX_MODEL_CHARACTERS} characters")
        if model in seen:
            raise ValidationError.of_field(f"{field}.{number}.model", "is named twice")
        seen.add(model)


def _cost(number: int, entry: Mapping[str, Any], name: str) -> str | None:
    value, place = entry.get(name), f"prices.{number}.{name}"
    if value is None:
        if name in COSTS[: _NUMBER_OF_COSTS[0]]:
            raise ValidationError.of_field(place, "is needed")
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        raise ValidationError.of_field(place, "must be a number") from None
    if not cost.is_finite() or not 0 <= cost <= MAX_PER_MILLION or cost != round(cost, PLACES):
        raise ValidationError.of_field(
            place, f"must be from 0 to {MAX_PER_MILLION} with at most {PLACES} decimal places"
        )
    return f"{cost.normalize():f}"
