from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from integrations.pricing.terms import BASE_RATES, FEES, Terms, terms_of

# ModelPrice stores 10 digits before the decimal point and 10 after it.
DIGITS, PLACES = 20, 10
_UNIT = Decimal("0.0000000001")
# The bound is one cent for each token. Every real model costs less, so a higher price is an error of the unit.
MAX_PER_MILLION = Decimal(10_000)
MODEL_LENGTH = 200


class CatalogError(ValueError):
    """A catalog cannot be fetched or has an unexpected format; the known prices stay."""


@dataclass(frozen=True, slots=True)
class PriceEntry:
    provider: str
    model: str
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    terms: Terms = field(default_factory=dict)


class Place(NamedTuple):
    name: str
    service_tier: str = ""
    above_tokens: int = 0


class Figure(NamedTuple):
    field: str
    place: Place
    value: Any


@dataclass(frozen=True, slots=True)
class Refusal:
    provider: str
    model: str
    problem: str


def amount(value: Any, *, scale: int = 0) -> Decimal | None:
    """Returns `value` times 10^`scale`; None if it is absent. Raises ValueError if it is invalid."""
    if value is None:
        return None
    try:
        # msgspec converts a float by its shortest exact text, so that 3e-06 becomes 3e-06 and not its binary neighbour.
        number: Decimal = msgspec.convert(value, Decimal)
    except msgspec.ValidationError:
        raise ValueError("is no number") from None
    if not number.is_finite():
        raise ValueError("is not a finite number")
    # The magnitude is checked before scaling and rounding, which have limits of their own.
    if number.adjusted() + scale > PLACES:
        raise ValueError("is absurdly high")
    number = number.scaleb(scale)
    if number < 0:
        raise ValueError("is negative")
    if number > MAX_PER_MILLION:
        raise ValueError(f"is above {MAX_PER_MILLION} dollars per 1,000,000 tokens")
    return number.quantize(_UNIT).normalize() + 0


def entry(provider: str, model: str, figures: Iterable[Figure], *, scale: int = 0) -> PriceEntry | Refusal | None:
    """Returns a refusal for an invalid figure, and None without a price of input or output. Fees are US dollars, rates
    are 10^-`scale` dollars per 1,000,000 tokens."""
    if not is_model_name(model):
        return Refusal(provider, _shown(model), f"the name is longer than {MODEL_LENGTH} characters, or not of text")
    costs: dict[Place, Decimal] = {}
    for figure in figures:
        try:
            cost = amount(figure.value, scale=0 if figure.place.name in FEES else scale)
        except ValueError as error:
            return Refusal(provider, model, f"{figure.field} {error}")
        if cost is not None:
            costs.setdefault(figure.place, cost)
    base = {name: costs.pop(Place(name), None) for name in BASE_RATES}
    if base["input"] is None or base["output"] is None:
        return None
    return PriceEntry(
        provider, model, base["input"], base["output"], base["cache_read"], base["cache_write"], _terms(costs, base)
    )


def _terms(costs: Mapping[Place, Decimal], base: Mapping[str, Decimal | None]) -> Terms:
    rates: dict[str, Decimal] = {}
    fees: dict[str, Decimal] = {}
    tiers: dict[tuple[str, int], dict[str, Decimal]] = {}
    for (name, service_tier, above), cost in costs.items():
        if name in FEES:
            fees[name] = cost
        elif service_tier or above:
            tiers.setdefault((service_tier, above), {})[name] = cost
        else:
            rates[name] = cost
    return terms_of(rates, fees, tiers, base)


def is_model_name(name: str) -> bool:
    return 0 < len(name) <= MODEL_LENGTH and name.isprintable()


def _shown(name: str) -> str:
    return "".join(letter for letter in name[:MODEL_LENGTH] if letter.isprintable())
