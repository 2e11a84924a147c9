from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import lcm
from typing import NamedTuple

import msgspec

from integrations.pricing.terms import Rates, Schedule, Terms, schedule_of
from integrations.providers.usage import Usage

PLACES = Decimal("0.0000000001")  # The record of a request keeps ten decimal places of a US dollar.
_ZERO = Decimal("0.0000000000")
_MAX_COST = Decimal(1_000_000)  # No real request costs as much, so a larger sum is an error in the provider's counts.

BY_PROVIDER = "provider"
"""The source of a cost that the provider has stated; other costs carry the source of their price."""
MIXED = "mixed"
"""The source of a sum whose parts have different sources."""


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price in US dollars per 1,000,000 tokens. A cache class without a price costs the same as fresh input.
    `terms` hold the prices of further classes, requests, searches and tiers; `source` names the catalog or person that
    set the price."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    terms: Terms = field(default_factory=dict, compare=False)
    source: str = field(default="", compare=False)
    _integers: tuple[int, int, int] | None = field(default=None, init=False, repr=False, compare=False)
    _schedule: Schedule | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def integers(self) -> tuple[int, int, int]:
        """The prices of input and output as integers, and the number of these units in a dollar. Integers are exact
        too, and faster for the estimate before every call."""
        found = self._integers
        if found is None:
            of_input, of_output = self.input.as_integer_ratio(), self.output.as_integer_ratio()
            one = lcm(of_input[1], of_output[1])
            found = of_input[0] * (one // of_input[1]), of_output[0] * (one // of_output[1]), one
            object.__setattr__(self, "_integers", found)
        return found

    @property
    def schedule(self) -> Schedule | None:
        found = self._schedule
        if found is None and self.terms:
            base = {
                "input": self.input,
                "output": self.output,
                "cache_read": self.cache_read,
                "cache_write": self.cache_write,
            }
            found = schedule_of(self.terms, base)
            object.__setattr__(self, "_schedule", found)
        return found


FREE = Price(Decimal(0), Decimal(0))
"""The cost of a request that costs nothing, which differs from an unknown cost."""


# The class is a msgspec struct because a frozen dataclass takes five times as long to make, and each request makes one.
class Cost(msgspec.Struct, frozen=True, gc=False):
    """The cost of a request in US dollars, for the four disjoint token classes and all other charges, 10 decimal places
    each; `total` is exactly their sum. `other` are fees, or the whole of a cost that the provider states. `source` is
    the source of the price, empty if the request costs nothing."""

    input: Decimal = _ZERO
    cache_read: Decimal = _ZERO
    cache_write: Decimal = _ZERO
    output: Decimal = _ZERO
    total: Decimal = _ZERO
    other: Decimal = _ZERO
    source: str = ""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.total + other.total,
            self.other + other.other,
            MIXED if self.source and other.source and self.source != other.source else self.source or other.source,
        )


def cost_of(usage: Usage, price: Price) -> Cost:
    """Prices every token once: fresh input is the prompt without cache reads and writes, and never below 0.

    If a provider bills other counts than it reports, the billed counts apply, and they name no cache classes.
    """
    if usage.billed_prompt_tokens is not None or usage.billed_completion_tokens is not None:
        usage = Usage(
            usage.billed_prompt_tokens or 0, usage.billed_completion_tokens or 0, service_tier=usage.service_tier
        )
    schedule = price.schedule
    if schedule is None:
        return _plain_cost(usage, price, _ZERO, price.source)
    rates = schedule.rates(usage.service_tier, usage.prompt_tokens)
    fee = _ZERO
    if (usage.searches or "request" in schedule.fees) and usage.total_tokens:
        fee = schedule.fee(usage).quantize(PLACES)
    if rates.is_plain or not _has_parts(usage):
        return _plain_cost(usage, rates, fee, price.source)
    return _cost_by_class(usage, rates, fee, price.source)


PriceOf = Callable[[str], Price | None]
"""Gives the price of a model by the name that the answer's provider has for it."""

_PLACES = 10
_UNITS_OF_DOLLAR = 10**_PLACES
_MAX_UNITS = int(_MAX_COST) * _UNITS_OF_DOLLAR


class TokenUnits(NamedTuple):
    """The cost of an input and an output token in units of the last of `PLACES`, if these are whole numbers and a
    usage's prompt and completion alone decide its cost. Nothing is rounded then, and integers give the same cost as
    decimals."""

    input: int
    output: int

    def texts(self, prompt: int, completion: int) -> tuple[str, str, str] | None:
        of_input, of_output = prompt * self.input, completion * self.output
        total = of_input + of_output
        if total >= _MAX_UNITS:
            return None
        return _text_of(of_input), _text_of(of_output), _text_of(total)


def token_units(price: Price | None) -> TokenUnits | None:
    if price is None:
        return None
    rates: Price | Rates = price
    if price.schedule is not None:
        usual = price.schedule.tiers[""]
        if len(usual) != 1 or "request" in price.schedule.fees:
            return None
        rates = usual[0][1]
    # Prices are for a million tokens, which leaves four places.
    found = [cost.scaleb(4) for cost in (rates.input, rates.output)]
    if any(cost != cost.to_integral_value() or cost < 0 for cost in found):
        return None
    return TokenUnits(int(found[0]), int(found[1]))


def _text_of(units: int) -> str:
    # A format with leading zeros takes three times as long.
    digits = str(units).zfill(_PLACES + 1)
    return f"{digits[:-_PLACES]}.{digits[-_PLACES:]}"


def _has_parts(usage: Usage) -> bool:
    return bool(
        usage.reasoning_tokens
        or usage.cache_write_1h_tokens
        or usage.audio_prompt_tokens
        or usage.audio_completion_tokens
        or usage.cache_read_audio_tokens
        or usage.image_prompt_tokens
        or usage.image_completion_tokens
    )


def known_cost(usage: Usage, price: Price | None, price_of: PriceOf | None = None) -> Cost | None:
    """Returns the cost that the provider states, else the computed one; None without a price or with impossibly large
    counts. `price_of` gives the prices of further models that took part in the answer."""
    if usage.parts and usage.stated_cost is None:
        return summed_cost(known_cost(part, price_of_part(part, price, price_of)) for part in usage.parts)
    if usage.stated_cost is not None:
        stated = usage.stated_cost.quantize(PLACES)
        return Cost(total=stated, other=stated, source=BY_PROVIDER)
    if price is None:
        return None
    try:
        cost = cost_of(usage, price)
    except InvalidOperation:
        return None
    return cost if cost.total < _MAX_COST else None


def summed_cost(costs: Iterable[Cost | None]) -> Cost | None:
    total = Cost()
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def price_of_part(part: Usage, price: Price | None, price_of: PriceOf | None) -> Price | None:
    return price_of(part.model) if part.model and price_of is not None else price


def _plain_cost(usage: Usage, rates: Price | Rates, fee: Decimal, source: str) -> Cost:
    read = write = _ZERO
    if usage.cache_read_tokens or usage.cache_write_tokens:
        read = _cost(usage.cache_read_tokens, rates.input if rates.cache_read is None else rates.cache_read)
        write = _cost(usage.cache_write_tokens, rates.input if rates.cache_write is None else rates.cache_write)
    fresh = _cost(usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens, rates.input)
    output = _cost(usage.completion_tokens, rates.output)
    total = fresh + output
    if read or write or fee:
        total += read + write + fee
    return Cost(fresh, read, write, output, total, fee, source)


def _cost_by_class(usage: Usage, rates: Rates, fee: Decimal, source: str) -> Cost:
    read_audio, read_text = _split(usage.cache_read_audio_tokens, usage.cache_read_tokens)
    written_1h, written = _split(usage.cache_write_1h_tokens, usage.cache_write_tokens)
    fresh = usage.prompt_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    audio, fresh = _split(usage.audio_prompt_tokens - read_audio, fresh)
    image, fresh = _split(usage.image_prompt_tokens, fresh)
    audio_tokens, text_tokens = _split(usage.audio_completion_tokens, usage.completion_tokens)
    image_tokens, text_tokens = _split(usage.image_completion_tokens, text_tokens)
    reasoning_tokens, text_tokens = _split(usage.reasoning_tokens, text_tokens)
    prompt = _cost(fresh, rates.input) + _cost(audio, rates.input_audio) + _cost(image, rates.input_image)
    read = _cost(read_text, rates.cache_read) + _cost(read_audio, rates.cache_read_audio)
    write = _cost(written, rates.cache_write) + _cost(written_1h, rates.cache_write_1h)
    output = _cost(text_tokens, rates.output) + _cost(audio_tokens, rates.output_audio)
    output += _cost(image_tokens, rates.output_image) + _cost(reasoning_tokens, rates.reasoning)
    return Cost(prompt, read, write, output, prompt + read + write + output + fee, fee, source)


def _split(part: int, whole: int) -> tuple[int, int]:
    part = max(min(part, whole), 0)
    return part, whole - part


def _cost(tokens: int, per_million: Decimal) -> Decimal:
    if tokens <= 0:
        return _ZERO
    return (per_million * tokens).scaleb(-6).quantize(PLACES)
