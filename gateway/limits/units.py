"""US dollars as integers, which Redis adds exactly: one unit is 10^-10 dollars, the last place of a recorded cost."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

PLACES = 10
MOST_UNITS = 2**63 - 1


def to_units(amount: Decimal) -> int:
    """Rounded up, so that a reservation never covers less than its estimate. At most what 64 bits hold."""
    units = int(amount.scaleb(PLACES).to_integral_value(ROUND_CEILING))
    return units if units < MOST_UNITS else MOST_UNITS


def recorded_units(cost: str) -> int:
    """What `to_units` makes of a cost as the record has it: with all its places, which only have to be read."""
    dollars, _, places = cost.partition(".")
    if len(places) != PLACES:
        return to_units(Decimal(cost))
    units = int(dollars + places)
    return units if units < MOST_UNITS else MOST_UNITS


def from_units(units: int) -> Decimal:
    return Decimal(units).scaleb(-PLACES)
