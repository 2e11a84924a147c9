"""Usage times price, in exact decimal arithmetic. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import lcm

import msgspec

from integrations.providers.base import Usage

PLACES = Decimal("0.0000000001")  # what the record keeps of a US dollar
_ZERO = Decimal("0.0000000000")
_MOST = Decimal(1_000_000)  # no call costs that


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per 1,000,000 tokens. A cache class without a price of its own costs what fresh input costs."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    _integers: tuple[int, int, int] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def integers(self) -> tuple[int, int, int]:
        """Input and output as integers, and how many of these are one dollar: exact as well, and faster to reckon with
        before a call, where each request pays for it."""
        found = self._integers
        if found is None:
            of_input, of_output = self.input.as_integer_ratio(), self.output.as_integer_ratio()
            one = lcm(of_input[1], of_output[1])
            found = of_input[0] * (one // of_input[1]), of_output[0] * (one // of_output[1]), one
            object.__setattr__(self, "_integers", found)
        return found


FREE = Price(Decimal(0), Decimal(0))
"""Of what costs nothing, which is not the same as a price that nobody knows."""


# A frozen dataclass costs five times as much to make, and each request makes one.
class Cost(msgspec.Struct, frozen=True, gc=False):
    """US dollars of the four disjoint token classes, 10 places each; `total` is their sum to the last digit."""

    input: Decimal = _ZERO
    cache_read: Decimal = _ZERO
    cache_write: Decimal = _ZERO
    output: Decimal = _ZERO
    total: Decimal = _ZERO

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.total + other.total,
        )


def cost_of(usage: Usage, price: Price) -> Cost:
    """Every token is priced once: fresh input is the prompt without cache reads and writes, never below 0. A provider
    that bills other counts than it reports has left its caching out of them."""
    if usage.billed_prompt_tokens is not None or usage.billed_completion_tokens is not None:
        usage = Usage(usage.billed_prompt_tokens or 0, usage.billed_completion_tokens or 0)
    read = write = _ZERO
    if usage.cache_read_tokens or usage.cache_write_tokens:
        read = _cost(usage.cache_read_tokens, price.input if price.cache_read is None else price.cache_read)
        write = _cost(usage.cache_write_tokens, price.input if price.cache_write is None else price.cache_write)
    fresh = _cost(usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens, price.input)
    output = _cost(usage.completion_tokens, price.output)
    return Cost(input=fresh, cache_read=read, cache_write=write, output=output, total=fresh + read + write + output)


def known_cost(usage: Usage, price: Price | None) -> Cost | None:
    """None when it is unknown: for want of a price, or because the provider's counts are beyond all reason."""
    if price is None:
        return None
    try:
        cost = cost_of(usage, price)
    except InvalidOperation:
        return None
    return cost if cost.total < _MOST else None


def _cost(tokens: int, per_million: Decimal) -> Decimal:
    if tokens <= 0:
        return _ZERO
    return (per_million * tokens).scaleb(-6).quantize(PLACES)
