"""One price of a catalog in our terms: our provider names, US dollars per 1,000,000 tokens, exact decimals."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

# What ModelPrice stores: 10 digits before the point and 10 after it.
_PLACES = Decimal("0.0000000001")
_LARGEST = Decimal(10) ** 9
MODEL_LENGTH = 200


class CatalogError(ValueError):
    """A catalog that is not what its format says; the prices known before stay."""


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """None is unknown. Input and output are always known: an entry without them is not one."""

    provider: str
    model: str
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


def amount(value: Any, *, scale: int = 0) -> Decimal | None:
    """A price, `value` times 10^`scale`; None when it is absent or nonsense (negative, infinite, absurd)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return None
    try:
        # repr() of a float is its shortest exact reading: 3e-06 is 3e-06 and not its binary neighbour.
        number = Decimal(str(value)).scaleb(scale)
    except InvalidOperation:
        return None
    if not number.is_finite() or number < 0 or number > _LARGEST:
        return None
    return number.quantize(_PLACES).normalize() + 0


def entry(
    provider: str, model: str, costs: tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None]
) -> PriceEntry | None:
    """An entry from input, output, cache read and cache write price; None when the first two are not both known."""
    input_cost, output_cost, cache_read, cache_write = costs
    if input_cost is None or output_cost is None or not model or len(model) > MODEL_LENGTH:
        return None
    return PriceEntry(provider, model, input_cost, output_cost, cache_read, cache_write)
