from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from integrations.pricing import shipped
from integrations.pricing.cost import Price
from integrations.pricing.lookup import find_price

# The record keeps 10 places of a US dollar: a price per million with at most 4 makes every product exact as it is.
_UNITS_PER_DOLLAR_AND_MILLION = 10_000


@dataclass(frozen=True, slots=True)
class Model:
    """`share` is the model's share of sessions in per mille; `wait_ms` is the median time to the first token,
    `token_ms` to each further one.

    `fallback` is called when this model fails. `thinks`: a part of its answer is reasoning.
    """

    provider: str
    name: str
    share: int
    wait_ms: int
    token_ms: float
    fallback: str
    thinks: bool = False


MODELS = (
    Model("openai", "gpt-4o-mini", 190, 310, 7.5, "claude-haiku-4-5"),
    Model("openai", "gpt-5-mini", 130, 620, 8.0, "gemini-2.5-flash", thinks=True),
    Model("anthropic", "claude-sonnet-4-6", 130, 900, 14.0, "gpt-5.4"),
    Model("openai", "gpt-5.4", 90, 1100, 13.0, "claude-sonnet-4-6", thinks=True),
    Model("google", "gemini-2.5-flash", 90, 380, 5.0, "gpt-4o-mini"),
    Model("anthropic", "claude-haiku-4-5", 80, 450, 6.5, "gpt-4o-mini"),
    Model("azure_openai", "gpt-4.1", 60, 520, 10.0, "gpt-4o-mini"),
    Model("google", "gemini-2.5-pro", 50, 1400, 12.0, "gpt-5.4", thinks=True),
    Model("anthropic", "claude-opus-4-8", 40, 1600, 21.0, "claude-sonnet-4-6"),
    Model("groq", "llama-3.3-70b-versatile", 40, 140, 3.2, "mistral-large-3"),
    Model("deepseek", "deepseek-chat", 30, 800, 20.0, "gpt-4o-mini"),
    Model("mistral", "mistral-large-3", 30, 430, 11.0, "gpt-4.1"),
    Model("xai", "grok-4.6", 20, 950, 12.0, "gpt-5.4", thinks=True),
    Model("cohere", "command-r-plus-08-2024", 20, 560, 15.0, "mistral-large-3"),
)


class PriceListError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """The prices of one token of each class, in units of 10⁻¹⁰ US dollars.

    `caching` is 0 without a cache, 1 when reads are billed, 2 when reads and writes are.
    """

    input: int
    output: int
    cache_read: int
    cache_write: int
    caching: int


def token_prices() -> list[TokenPrices]:
    table = {
        (entry.provider, entry.model): Price(entry.input, entry.output, entry.cache_read, entry.cache_write)
        for _, entry in reversed(list(shipped.entries()))
    }
    return [_units(model, find_price(table, model.provider, model.name)) for model in MODELS]


def _units(model: Model, price: Price | None) -> TokenPrices:
    if price is None:
        raise PriceListError(f"The price list does not know {model.provider}/{model.name}.")
    caching = int(price.cache_read is not None) + int(price.cache_write is not None)
    fresh, output, read, write = (_exact(model, amount) for amount in _classes(price))
    return TokenPrices(input=fresh, output=output, cache_read=read, cache_write=write, caching=caching)


def _classes(price: Price) -> Iterator[Decimal]:
    yield price.input
    yield price.output
    yield price.input if price.cache_read is None else price.cache_read
    yield price.input if price.cache_write is None else price.cache_write


def _exact(model: Model, amount: Decimal) -> int:
    units = amount * _UNITS_PER_DOLLAR_AND_MILLION
    if units != int(units):
        raise PriceListError(f"A price of {model.provider}/{model.name} has more than 4 places: {amount}.")
    return int(units)
