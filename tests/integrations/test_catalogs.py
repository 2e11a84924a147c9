from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from integrations.pricing import catalog_a, catalog_b, shipped
from integrations.pricing.entries import CatalogError, PriceEntry, Refusal, amount
from tests.recordings import shared_file
from tests.tables.cases import stored, tabled

CATALOG_A: dict[str, Any] = stored(__file__, "CATALOG_A")
CATALOG_B: dict[str, Any] = {
    "openai": {
        "models": {
            "gpt-4o": {"cost": {"input": 99, "output": 99}},
            "gpt-4.1": {"cost": {"input": 2, "output": 8, "cache_read": 0.5, "cache_write": None}},
            "unpriced": {},
            "broken": 3,
        }
    },
    "togetherai": {"models": {"m/One": {"cost": {"input": 0.1, "output": 0.3}}}},
    "nobody": {"models": {"x": {"cost": {"input": 1, "output": 1}}}},
    "groq": None,
}


def test_catalog_a__chat_and_embedding_models_of_known_providers__per_million_and_exact() -> None:
    assert list(catalog_a.parse(CATALOG_A)) == [
        PriceEntry("openai", "gpt-4o", Decimal("2.5"), Decimal("10"), Decimal("1.25")),
        PriceEntry("azure_openai", "gpt-4o", Decimal("3"), Decimal("11")),
        PriceEntry("groq", "openai/gpt-oss-20b", Decimal("0.075"), Decimal("0.3"), None, Decimal("0.1")),
        PriceEntry("openai", "text-embedding", Decimal("0.1"), Decimal("0")),
    ]


@tabled
def test_catalog_a__other_operations__cost_searches_or_tokens(
    provider: str, model: str, fields: dict[str, Any], entry: PriceEntry
) -> None:
    assert list(catalog_a.parse({model: {"litellm_provider": provider, **fields}})) == [entry]


def test_catalog_a__images_of_other_vendors__are_not_counted_in_tokens() -> None:
    fields = {"mode": "image_generation", "input_cost_per_token": 1e-10, "output_cost_per_token": 1e-10}
    assert list(catalog_a.parse({"flux": {"litellm_provider": "fireworks_ai", **fields}})) == []


def test_catalog_b__priced_models_of_known_providers__as_listed() -> None:
    assert list(catalog_b.parse(CATALOG_B)) == [
        PriceEntry("openai", "gpt-4o", Decimal("99"), Decimal("99")),
        PriceEntry("openai", "gpt-4.1", Decimal("2"), Decimal("8"), Decimal("0.5")),
        PriceEntry("together", "m/One", Decimal("0.1"), Decimal("0.3")),
    ]


@pytest.mark.parametrize("parse", [catalog_a.parse, catalog_b.parse])
@pytest.mark.parametrize("catalog", [None, [], {}, "text", 3])
def test_parse__not_a_catalog__refused(parse: Any, catalog: Any) -> None:
    with pytest.raises(CatalogError):
        list(parse(catalog))


@tabled
def test_amount__price_or_none__exact_decimal(value: Any, expected: str | None) -> None:
    parsed = amount(value)
    assert (None if parsed is None else f"{parsed:f}") == expected


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (True, "no number"),
        ("free", "no number"),
        ([], "no number"),
        ({}, "no number"),
        ("", "no number"),
        (-1, "negative"),
        ("-0.1", "negative"),
        (float("nan"), "not a finite"),
        (float("inf"), "not a finite"),
        ("NaN", "not a finite"),
        (10_000.01, "above 10000"),
        (1e30, "absurdly"),
        ("1e999999999", "absurdly"),
        ("-1e30", "absurdly"),
    ],
)
def test_amount__nonsense__raises_with_the_reason(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        amount(value)


def test_amount__scaled__bound_is_of_the_result() -> None:
    assert amount("0.01", scale=6) == 10_000
    with pytest.raises(ValueError, match="above"):
        amount("0.0101", scale=6)


NONSENSE_A = {
    "litellm_provider": "openai",
    "mode": "chat",
    "input_cost_per_token": 1e-6,
    "output_cost_per_token": -1e-6,
}


@pytest.mark.parametrize("name", ["n\0ul", "", "line\nbreak", "m" * 201])
def test_read__bad_model_name__refused_without_it(name: str) -> None:
    fields = {**NONSENSE_A, "output_cost_per_token": 1e-6}
    (refused,) = catalog_a.read({name: fields})
    assert isinstance(refused, Refusal)
    assert refused.model.isprintable() and "name" in refused.problem


def test_read__nonsense_in_both_catalogs__refusals_that_name_the_field() -> None:
    assert list(catalog_a.read({"bad": NONSENSE_A})) == [Refusal("openai", "bad", "output_cost_per_token is negative")]
    models = {"bad": {"cost": {"input": 1, "output": 1, "cache_read": "x"}}, "worse": {"cost": [1]}}
    assert list(catalog_b.read({"groq": {"models": models}})) == [
        Refusal("groq", "bad", "cache_read is no number"),
        Refusal("groq", "worse", "cost is no object"),
    ]


def test_build__model_in_both__catalog_a_counts() -> None:
    listed = json.loads(shipped.build(CATALOG_A, CATALOG_B))
    assert listed["catalog_a"]["openai"] == {"gpt-4o": ["2.5", "10", "1.25"], "text-embedding": ["0.1", "0"]}
    assert listed["catalog_a"]["groq"] == {"openai/gpt-oss-20b": ["0.075", "0.3", None, "0.1"]}
    assert listed["catalog_b"]["openai"] == {"gpt-4.1": ["2", "8", "0.5"]}


def test_shipped_list__read__every_model_once_with_known_prices() -> None:
    entries = [entry for _, entry in shipped.entries()]
    assert len(entries) > 1000
    assert len({(entry.provider, entry.model) for entry in entries}) == len(entries)
    prices = {(entry.provider, entry.model): entry for entry in entries}
    assert prices["openai", "gpt-4o"].input == Decimal("2.5")
    assert ("sandbox", "*") in prices


def test_build_price_list__files__written(tmp_path: Path) -> None:
    first, second, output = (tmp_path / name for name in ("a.json", "b.json", "out.json"))
    first.write_text(json.dumps(CATALOG_A))
    second.write_text(json.dumps(CATALOG_B))
    call_command("build_price_list", catalog_a=first, catalog_b=second, output=output, stdout=StringIO())
    assert output.read_text() == shipped.build(CATALOG_A, CATALOG_B)


def test_build_price_list__bad_catalog__command_error_and_no_file(tmp_path: Path) -> None:
    bad, output = tmp_path / "a.json", tmp_path / "out.json"
    bad.write_text("[]")
    with pytest.raises(CommandError):
        call_command("build_price_list", catalog_a=bad, catalog_b=bad, output=output)
    assert not output.exists()


SHARED = [
    (a, b) for a, b in [(shared_file("pricing", "catalog_a.json"), shared_file("pricing", "catalog_b.json"))] if a and b
]


@pytest.mark.parametrize(("first", "second"), SHARED)
def test_shipped_list__built_from_the_catalogs__is_up_to_date(first: Path, second: Path) -> None:
    built = shipped.build(json.loads(first.read_bytes()), json.loads(second.read_bytes()))
    assert built == shipped.PRICE_LIST.read_text(), "write the list anew: `manage.py build_price_list`"
