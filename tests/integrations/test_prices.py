from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from integrations.errors import PriceNotFoundError, TooManyPricesError
from integrations.models import ModelPrice, PricePeriod
from integrations.pricing import shipped
from integrations.pricing.cost import Price
from integrations.pricing.selectors import price_mark
from integrations.pricing.services import load_shipped_prices, load_shipped_prices_once, remove_price, set_price
from integrations.selectors import price_overrides, price_table
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db

COSTS = {"input_cost_per_1m": Decimal(1), "output_cost_per_1m": Decimal(2)}
OTHER = {"input_cost_per_1m": Decimal(3), "output_cost_per_1m": Decimal(4), "cache_read_cost_per_1m": Decimal("0.5")}
NAME: dict[str, Any] = {"provider": "openai", "model": "gpt-4o", "actor": "user:op"}


def periods(**scope: Any) -> list[tuple[str, Decimal | None, str, bool]]:
    rows = PricePeriod.objects.filter(provider="openai", model="gpt-4o", **scope).order_by("valid_from", "pk")
    return [(row.source, row.input_cost_per_1m, row.changed_by, row.valid_until is None) for row in rows]


def test_load_shipped_prices__twice__second_changes_nothing() -> None:
    first = load_shipped_prices()
    assert first.added == ModelPrice.objects.count() == PricePeriod.objects.filter(valid_until=None).count() > 1000
    second = load_shipped_prices()
    assert (second.added, second.updated, second.removed, second.skipped) == (0, 0, 0, first.added)
    assert price_table()["openai", "gpt-4o"] == Price(Decimal("2.5"), Decimal("10"), Decimal("1.25"))


def test_load_shipped_prices_once__again__reads_a_mark_alone(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    load_shipped_prices_once()
    with django_assert_max_num_queries(3):
        load_shipped_prices_once()
    assert price_table()["openai", "gpt-4o"] == Price(Decimal("2.5"), Decimal("10"), Decimal("1.25"))


def test_load_shipped_prices_once__another_list__loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load_shipped_prices_once()
    other = tmp_path / "prices.json"
    other.write_text('{"catalog_a": {"openai": {"gpt-4o": ["7", "8"]}}, "catalog_b": {}}')
    monkeypatch.setattr(shipped, "PRICE_LIST", other)
    load_shipped_prices_once()
    assert price_table()["openai", "gpt-4o"] == Price(Decimal(7), Decimal(8))


def test_load_prices__command__prints_the_outcome() -> None:
    out = StringIO()
    call_command("load_prices", stdout=out)
    assert out.getvalue().startswith("added ")


def test_load_shipped_prices__manual_price__untouched() -> None:
    ModelPrice.objects.create(provider="openai", model="gpt-4o", **COSTS)
    assert load_shipped_prices().updated == 0
    assert price_table()["openai", "gpt-4o"] == Price(Decimal(1), Decimal(2))


def test_set_price__one_project__counts_for_it_alone() -> None:
    load_shipped_prices()
    project, other = make_project(), make_project()
    before = price_table()
    set_price(project_id=project.pk, costs=OTHER, **NAME)
    assert price_overrides(project.pk) == {("openai", "gpt-4o"): Price(Decimal(3), Decimal(4), Decimal("0.5"))}
    assert price_overrides(other.pk) == {}
    assert price_table() == before
    assert periods(project=project) == [("manual", Decimal(3), "user:op", True)]


def test_set_price__again__old_period_ends_where_the_new_begins() -> None:
    project = make_project()
    set_price(project_id=project.pk, costs=COSTS, **NAME)
    set_price(project_id=project.pk, costs=OTHER, **NAME)
    set_price(project_id=project.pk, costs=OTHER, **NAME)
    assert periods(project=project) == [
        ("manual", Decimal(1), "user:op", False),
        ("manual", Decimal(3), "user:op", True),
    ]
    first, second = PricePeriod.objects.order_by("valid_from", "pk")
    assert first.valid_until == second.valid_from
    assert ModelPrice.objects.count() == 1


def test_remove_price__of_a_project__ends() -> None:
    project = make_project()
    set_price(project_id=project.pk, costs=COSTS, **NAME)
    remove_price(project_id=project.pk, **NAME)
    assert price_overrides(project.pk) == {}
    assert periods(project=project) == [("manual", Decimal(1), "user:op", False)]
    with pytest.raises(PriceNotFoundError):
        remove_price(project_id=project.pk, **NAME)


def test_remove_price__for_all__back_to_the_catalogs_price() -> None:
    load_shipped_prices()
    set_price(project_id=None, costs=COSTS, **NAME)
    assert price_table()["openai", "gpt-4o"] == Price(Decimal(1), Decimal(2))
    remove_price(project_id=None, **NAME)
    assert price_table()["openai", "gpt-4o"] == Price(Decimal("2.5"), Decimal("10"), Decimal("1.25"))
    assert periods() == [
        ("catalog_a", Decimal("2.5"), "shipped", False),
        ("manual", Decimal(1), "user:op", False),
        ("catalog_a", Decimal("2.5"), "user:op", True),
    ]
    with pytest.raises(PriceNotFoundError):
        remove_price(project_id=None, **NAME)


def test_remove_price__for_all_of_a_model_no_catalog_knows__unknown_again() -> None:
    set_price(project_id=None, costs=COSTS, **NAME)
    remove_price(project_id=None, **NAME)
    assert price_table() == {}
    assert periods() == [("manual", Decimal(1), "user:op", False)]


def test_remove_price__of_another_project__not_found() -> None:
    mine, other = make_project(), make_project()
    set_price(project_id=other.pk, costs=COSTS, **NAME)
    set_price(project_id=None, costs=COSTS, **NAME)
    with pytest.raises(PriceNotFoundError):
        remove_price(project_id=mine.pk, **NAME)
    assert price_overrides(other.pk)


def test_set_price__as_many_as_a_project_can_have__refused_but_not_for_those_it_has() -> None:
    project = make_project()
    ModelPrice.objects.bulk_create(
        ModelPrice(project=project, provider="openai", model=f"gpt-{number}", **COSTS) for number in range(999)
    )
    set_price(project_id=project.pk, costs=COSTS, **NAME)
    set_price(project_id=project.pk, costs=OTHER, **NAME)
    with pytest.raises(TooManyPricesError):
        set_price(project_id=project.pk, costs=COSTS, **{**NAME, "model": "one-more"})
    set_price(project_id=None, costs=COSTS, **{**NAME, "model": "one-more"})


def test_project__deleted__its_prices_go_too() -> None:
    project = make_project()
    set_price(project_id=project.pk, costs=COSTS, **NAME)
    project.delete()
    assert not ModelPrice.objects.exists() and not PricePeriod.objects.exists()


def test_price_table__unknown_input_or_output__left_out() -> None:
    ModelPrice.objects.create(provider="openai", model="half", input_cost_per_1m=Decimal(1))
    assert price_table() == {}


def test_price_mark__after_each_change_for_all__is_another_one() -> None:
    marks = [price_mark()]
    set_price(project_id=None, costs=COSTS, **NAME)
    marks.append(price_mark())
    set_price(project_id=None, costs=OTHER, **NAME)
    marks.append(price_mark())
    load_shipped_prices()
    marks.append(price_mark())
    remove_price(project_id=None, **NAME)
    marks.append(price_mark())
    assert len(set(marks)) == len(marks)


def test_price_mark__changed_by_a_clock_that_was_set_back__is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    set_price(project_id=None, costs=OTHER, **{**NAME, "model": "gpt-4o-mini"})
    set_price(project_id=None, costs=COSTS, **NAME)
    before, earlier = price_mark(), timezone.now() - timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: earlier)
    set_price(project_id=None, costs=COSTS, **{**NAME, "model": "gpt-4o-mini"})
    assert price_mark() != before


def test_price_mark__nothing_changed_for_all__stays() -> None:
    load_shipped_prices()
    before = price_mark()
    load_shipped_prices()
    set_price(project_id=make_project().pk, costs=COSTS, **NAME)
    assert price_mark() == before
