"""One price of a catalog in our terms: our provider names, US dollars per 1,000,000 tokens, exact decimals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

# What ModelPrice stores: 10 digits before the point and 10 after it.
DIGITS, PLACES = 20, 10
_UNIT = Decimal("0.0000000001")
# A cent for each token. The dearest model there is costs less; what is above is a slip of the unit.
MOST_PER_MILLION = Decimal(10_000)
MODEL_LENGTH = 200


class CatalogError(ValueError):
    """A catalog that is not what its format says, or cannot be had; the prices known before stay."""


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """None is unknown. Input and output are always known: an entry without them is not one."""

    provider: str
    model: str
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A model of a catalog whose price makes no sense, and why; what was known of it before stays."""

    provider: str
    model: str
    problem: str


def amount(value: Any, *, scale: int = 0) -> Decimal | None:
    """A price, `value` times 10^`scale`; None when it is absent. Raises ValueError when it makes no sense."""
    if value is None:
        return None
    try:
        # Of a float its shortest exact reading: 3e-06 is 3e-06 and not its binary neighbour.
        number: Decimal = msgspec.convert(value, Decimal)
    except msgspec.ValidationError:
        raise ValueError("is no number") from None
    if not number.is_finite():
        raise ValueError("is no finite number")
    # Before scaling and rounding, which have limits of their own.
    if number.adjusted() + scale > PLACES:
        raise ValueError("is absurdly high")
    number = number.scaleb(scale)
    if number < 0:
        raise ValueError("is negative")
    if number > MOST_PER_MILLION:
        raise ValueError(f"is above {MOST_PER_MILLION} dollars per 1,000,000 tokens")
    return number.quantize(_UNIT).normalize() + 0


def entry(
    provider: str, model: str, fields: Mapping[str, Any], names: tuple[str, str, str, str], *, scale: int = 0
) -> PriceEntry | Refusal | None:
    """The entry of a model whose input, output, cache read and cache write price are `fields` under `names`.

    None when input and output price are not both there: the catalog does not know what the model costs.
    """
    if not is_model_name(model):
        return Refusal(provider, _shown(model), f"the name is longer than {MODEL_LENGTH} characters, or not of text")
    costs = []
    for name in names:
        try:
            costs.append(amount(fields.get(name), scale=scale))
        except ValueError as error:
            return Refusal(provider, model, f"{name} {error}")
    if costs[0] is None or costs[1] is None:
        return None
    return PriceEntry(provider, model, costs[0], costs[1], costs[2], costs[3])


def is_model_name(name: str) -> bool:
    return 0 < len(name) <= MODEL_LENGTH and name.isprintable()


def _shown(name: str) -> str:
    return "".join(letter for letter in name[:MODEL_LENGTH] if letter.isprintable())
