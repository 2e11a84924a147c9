"""US dollars as integers, which Redis adds exactly: one unit is 10^-10 dollars, the last place of a recorded cost."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

PLACES = 10
MAX_UNITS = 2**63 - 1


def to_units(amount: Decimal) -> int:
    """Rounds up, so that a reservation never covers less than its estimate. The maximum is 64 bits."""
    units = int(amount.scaleb(PLACES).to_integral_value(ROUND_CEILING))
    return units if units < MAX_UNITS else MAX_UNITS


def recorded_units(cost: str) -> int:
    """Parses a recorded cost without a Decimal: it always has all of its decimal places."""
    dollars, _, places = cost.partition(".")
    if len(places) != PLACES:
        return to_units(Decimal(cost))
    units = int(dollars + places)
    return units if units < MAX_UNITS else MAX_UNITS


def from_units(units: int) -> Decimal:
    return Decimal(units).scaleb(-PLACES)
