"""The terms of a price beside its four base rates: rates of further token classes, fees, tiers.

Stored as JSON, whose shape `Terms` is:

    {"rates": {"cache_write_1h": "6"},                     US dollars per 1,000,000 tokens, by name of RATES
     "fees": {"search_low": "0.005", "request": "0.005"},  US dollars for one, by name of FEES
     "tiers": [{"service_tier": "flex", "above_tokens": 200000, "rates": {"input": "1.5", "output": "6"}}]}

A tier counts for a whole request: for those served at its `service_tier` (left out: at any), with a prompt of more than
`above_tokens` (left out: of any length). Empty parts are left out, so the terms of most models are {}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from integrations.providers.usage import Usage

Terms = Mapping[str, Any]
NO_TERMS: Terms = {}
# The mapping's keys are (service tier, prompt tokens above which it applies), its values rates by name.
Tiers = Mapping[tuple[str, int], Mapping[str, Decimal]]

# Each rate maps to the rate that applies where a price does not name it; None where tokens of the class cost nothing
# extra.
RATES: Mapping[str, str | None] = {
    "input": None,
    "output": None,
    "cache_read": "input",
    "cache_write": "input",
    "cache_write_1h": "cache_write",
    "input_audio": "input",
    "input_image": "input",
    "cache_read_audio": "cache_read",
    "output_audio": "output",
    "output_image": "output",
    "reasoning": "output",
}
BASE_RATES = ("input", "output", "cache_read", "cache_write")
FEES = ("request", "search_low", "search_medium", "search_high")
_SEARCH_SIZES = ("low", "medium", "high")
_DEFAULT_SEARCH = "medium"
_ZERO = Decimal(0)


class Rates(msgspec.Struct, frozen=True):
    """The rates of all token classes in US dollars per 1,000,000 tokens; RATES fills in those the price does not name.
    `is_plain` means that no class has another price than the class that contains it."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    input_audio: Decimal
    input_image: Decimal
    cache_read_audio: Decimal
    output_audio: Decimal
    output_image: Decimal
    reasoning: Decimal
    is_plain: bool


class Schedule(msgspec.Struct, frozen=True):
    """The terms prepared for use. `tiers` maps a service tier to pairs of (tokens that a prompt has to exceed, rates),
    the highest bound first."""

    tiers: Mapping[str, tuple[tuple[int, Rates], ...]]
    fees: Mapping[str, Decimal]

    def rates(self, service_tier: str, prompt_tokens: int) -> Rates:
        steps = self.tiers.get(service_tier) or self.tiers[""]
        for above, rates in steps:
            if prompt_tokens > above:
                return rates
        return steps[-1][1]

    def fee(self, usage: Usage) -> Decimal:
        """Sums the fees of the request and of its searches; a search of unknown size costs the same as a medium one."""
        if not self.fees:
            return _ZERO
        total = self.fees.get("request", _ZERO)
        if usage.searches:
            size = usage.search_context_size if usage.search_context_size in _SEARCH_SIZES else _DEFAULT_SEARCH
            total += self.fees.get(f"search_{size}", _ZERO) * usage.searches
        return total


def terms_of(rates: Mapping[str, Decimal], fees: Mapping[str, Decimal], tiers: Tiers, base: Mapping[str, Any]) -> Terms:
    """Returns the terms in canonical form, so that equal terms are equal objects: sorted, and without rates that RATES
    implies. `base` holds the rates outside of the terms by name, None if unknown."""
    given = {name: cost for name, cost in {**base, **rates}.items() if cost is not None}
    further = {name: cost for name, cost in rates.items() if cost != _fallback(name, given)}
    named = {*further, *(name for name, cost in base.items() if cost is not None)}
    listed = []
    for (service_tier, above), own in sorted(tiers.items()):
        kept = {name: cost for name, cost in own.items() if name in named or cost != _fallback(name, own)}
        tier: dict[str, Any] = {"service_tier": service_tier} if service_tier else {}
        listed.append(tier | ({"above_tokens": above} if above else {}) | {"rates": _texts(kept)})
    parts: dict[str, Any] = {
        "rates": _texts(further),
        "fees": _texts(fees),
        "tiers": [tier for tier in listed if tier["rates"]],
    }
    return {name: part for name, part in parts.items() if part}


def schedule_of(terms: Terms, base: Mapping[str, Decimal | None]) -> Schedule:
    rates = {name: cost for name, cost in base.items() if cost is not None} | _amounts(terms.get("rates", {}))
    own: dict[str, dict[int, Mapping[str, Decimal]]] = {"": {}}
    for tier in terms.get("tiers", ()):
        steps = own.setdefault(tier.get("service_tier", ""), {})
        steps[tier.get("above_tokens", 0)] = _amounts(tier["rates"])
    return Schedule(
        tiers={name: tuple(_steps(rates, own[""], own[name])) for name in own}, fees=_amounts(terms.get("fees", {}))
    )


def _steps(
    rates: Mapping[str, Decimal], usual: Mapping[int, Mapping[str, Decimal]], own: Mapping[int, Mapping[str, Decimal]]
) -> Iterable[tuple[int, Rates]]:
    """Yields a service tier's rates by the bound of the prompt's length. Rates for both tier and length come first,
    then those for the length, for the service tier, and for all requests."""
    for above in sorted({0, *usual, *own}, reverse=True):
        named = dict(rates)
        for given in (own.get(0), _step(usual, above), _step(own, above)):
            named.update(given or {})
        yield above, _filled(named)


def _step(steps: Mapping[int, Mapping[str, Decimal]], above: int) -> Mapping[str, Decimal] | None:
    found = max((bound for bound in steps if 0 < bound <= above), default=None)
    return None if found is None else steps[found]


def _filled(named: dict[str, Decimal]) -> Rates:
    for name in RATES:
        if name not in named:
            named[name] = _fallback(name, named) or _ZERO
    is_plain = all(
        named[name] == named[RATES[name] or name] for name in RATES if name not in ("cache_read", "cache_write")
    )
    return Rates(**named, is_plain=is_plain)


def _fallback(name: str, named: Mapping[str, Decimal]) -> Decimal | None:
    whole = RATES[name]
    if whole is None:
        return None
    return named[whole] if whole in named else _fallback(whole, named)


def _texts(costs: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: f"{costs[name]:f}" for name in sorted(costs)}


def _amounts(texts: Mapping[str, str]) -> dict[str, Decimal]:
    return {name: Decimal(text) for name, text in texts.items() if name in RATES or name in FEES}
