"""US dollars as integers, which Redis adds exactly: one unit is 10^-10 dollars, the last place of a recorded cost."""

from __future__ import annotations

from decimal import Decimal

PLACES = 10
MOST_UNITS = 2**63 - 1


def to_units(amount: Decimal) -> int:
    """Rounded up, so that a reservation never covers less than its estimate. At most what 64 bits hold."""
    scaled = amount.scaleb(PLACES)
    whole = int(scaled)
    return min(whole + (scaled > whole), MOST_UNITS)


def from_units(units: int) -> Decimal:
    return Decimal(units).scaleb(-PLACES)
