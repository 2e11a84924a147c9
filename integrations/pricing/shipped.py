"""The price list that ships with the product, written by `manage.py build_price_list`.

Its form is `{source: {provider: {model: [input, output, cache read, cache write, terms]}}}`. Figures are decimal
strings of US dollars per 1,000,000 tokens, null if unknown, trailing nulls left out; terms are an object as in
`terms.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from integrations.pricing import catalog_a, catalog_b
from integrations.pricing.entries import PriceEntry

PRICE_LIST = Path(__file__).with_name("price_list.json")
CATALOG_A = "catalog_a"
CATALOG_B = "catalog_b"

SANDBOX = "sandbox"
# The sandbox's price is invented, so that a demonstration shows costs and budgets; nobody pays it.
SANDBOX_PRICE = PriceEntry("sandbox", "*", Decimal("0.5"), Decimal("1.5"), Decimal("0.05"), Decimal("0.625"))


def build(first: Any, second: Any) -> str:
    listed: dict[str, dict[str, dict[str, list[Any]]]] = {CATALOG_A: {}, CATALOG_B: {}}
    known: set[tuple[str, str]] = set()
    for source, entries in ((CATALOG_A, catalog_a.parse(first)), (CATALOG_B, catalog_b.parse(second))):
        _add(listed[source], entries, known)
    return _dump(listed)


def entries() -> Iterator[tuple[str, PriceEntry]]:
    listed: Mapping[str, Mapping[str, Mapping[str, list[Any]]]] = json.loads(PRICE_LIST.read_bytes())
    for source, providers in listed.items():
        for provider, models in providers.items():
            for model, figures in models.items():
                *texts, terms = [*figures, None, None, None][:5]
                costs = [None if figure is None else Decimal(figure) for figure in texts]
                if costs[0] is not None and costs[1] is not None:
                    yield source, PriceEntry(provider, model, costs[0], costs[1], costs[2], costs[3], terms or {})
    yield SANDBOX, SANDBOX_PRICE


def _add(listed: dict[str, dict[str, list[Any]]], entries: Iterable[PriceEntry], known: set[tuple[str, str]]) -> None:
    for found in entries:
        key = (found.provider, found.model)
        if key not in known:
            known.add(key)
            listed.setdefault(found.provider, {})[found.model] = _figures(found)


def _figures(found: PriceEntry) -> list[Any]:
    costs = [found.input, found.output, found.cache_read, found.cache_write]
    figures: list[Any] = [None if cost is None else f"{cost:f}" for cost in costs]
    figures.append(found.terms or None)
    while figures[-1] is None:
        figures.pop()
    return figures


def _dump(listed: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    lines = []
    for source, providers in listed.items():
        blocks = []
        for provider, models in sorted(providers.items()):
            rows = ",\n".join(
                f"   {json.dumps(model)}: {json.dumps(figures)}" for model, figures in sorted(models.items())
            )
            blocks.append(f"  {json.dumps(provider)}: {{\n{rows}\n  }}")
        body = ",\n".join(blocks)
        lines.append(f" {json.dumps(source)}: {{\n{body}\n }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
