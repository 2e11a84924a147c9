"""The money of experiments: the ledger under many workers, the highest cost of a request, the end of the money."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.db import connection

from gateway.evaluations.highest_cost import highest_cost
from gateway.experiments import budget
from gateway.models import Experiment
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from integrations.models import ModelPrice, ProviderIntegration
from tests.factories.datasets import make_dataset
from tests.factories.evaluators import make_evaluator
from tests.factories.prompts import make_config, make_version
from tests.factories.settings import make_settings
from tests.gateway.experiments.conftest import MODEL, PATH, Scene, by_request
from tests.gateway.experiments.test_scoring import CRITERIA, judging
from tests.night import examples
from tests.tables.cases import tabled

WORKERS, TASKS = 8, examples(2_000, 10_000)
NOTHING = Decimal(0)
MESSAGES = [{"role": "user", "content": "Hello"}]


def _price(model: str = "gpt-4o", **values: Any) -> None:
    rates = {"input_cost_per_1m": "2.5", "output_cost_per_1m": "10", **values}
    ModelPrice.objects.create(provider="openai", model=model, source="manual", **rates)


def _snapshot(scene: Scene) -> ProjectSnapshot:
    return load_models(scene.project_id, load_prices(), project_settings(scene.project_id))


def test_ledger__eight_workers_at_once__never_spends_more_than_the_budget(scene: Scene) -> None:
    limit = Decimal(TASKS).scaleb(-4) + Decimal("3E-10")
    experiment = Experiment.objects.create(project=scene.project, item_limit=1, max_cost_usd=limit)

    def work(seed: int) -> tuple[Decimal, int]:
        """Spends up to the bound of each task; returns what it spent, and how many tasks found no room."""
        rng, spent, refused = random.Random(seed), Decimal(0), 0
        try:
            for _ in range(TASKS // WORKERS):
                bound = Decimal(rng.randrange(1, 5_000_000)).scaleb(-10)
                if not budget.reserve(experiment.pk, bound):
                    refused += 1
                    continue
                cost = Decimal(rng.randrange(0, int(bound.scaleb(10)) + 1)).scaleb(-10)
                budget.settle(experiment.pk, reserved=bound, cost=cost)
                spent += cost
        finally:
            connection.close()
        return spent, refused

    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(work, range(WORKERS)))

    experiment.refresh_from_db()
    spent, refused = sum((one[0] for one in found), Decimal(0)), sum(one[1] for one in found)
    assert (experiment.spent_usd, experiment.reserved_usd) == (spent, NOTHING)
    assert spent <= limit
    assert 0 < refused < TASKS
    # What is left is less than the dearest task.
    assert limit - spent < Decimal("0.0005")


def test_ledger__exactly_as_much_as_is_left__fits(scene: Scene) -> None:
    experiment = Experiment.objects.create(project=scene.project, item_limit=1, max_cost_usd=Decimal("0.3"))
    amounts = [Decimal("0.1"), Decimal("0.2")]

    assert all(budget.reserve(experiment.pk, amount) for amount in amounts)
    assert not budget.reserve(experiment.pk, Decimal("0.0000000001"))

    budget.settle(experiment.pk, reserved=amounts[0], cost=Decimal("0.0999999999"))
    assert budget.reserve(experiment.pk, Decimal("0.0000000001"))


PRIORITY: dict[str, Any] = {"terms": {"tiers": [{"service_tier": "priority", "rates": {"output": "70"}}]}}
SEARCHES: dict[str, Any] = {"terms": {"fees": {"search_medium": "0.05"}}}


@pytest.mark.parametrize(
    ("fields", "price", "at_least"),
    [
        ({"max_tokens": 100}, {}, "0.0010"),
        ({"max_tokens": 100, "n": 3}, {}, "0.0030"),
        ({}, {}, "0.16384"),  # The model answers with at most 16,384 tokens.
        ({"max_tokens": 100, "reasoning_effort": "high"}, {}, "0.16384"),
        ({"max_tokens": 100}, {"cache_write_cost_per_1m": "1000"}, "0.1"),
        ({"max_tokens": 100}, {"terms": {"rates": {"reasoning": "40"}}}, "0.0040"),
        ({"max_tokens": 100, "service_tier": "priority"}, PRIORITY, "0.007"),
        ({"max_tokens": 100, "service_tier": "auto"}, PRIORITY, "0.007"),
        ({"max_tokens": 100, "web_search_options": {}}, SEARCHES, "0.05"),
        ({"max_tokens": 100, "tools": [{"type": "web_search"}]}, SEARCHES, "0.05"),
        ({"max_tokens": 100, "plugins": [{"id": "web"}]}, SEARCHES, "0.05"),
        ({"max_tokens": 100}, {"terms": {"fees": {"request": "0.5"}}}, "0.5"),
        ({"max_tokens": 100, "models": ["openai/gpt-4o"]}, {}, "0.0020"),
    ],
)
def test_highest_cost__what_makes_a_request_dear__is_counted(
    scene: Scene, fields: dict[str, Any], price: dict[str, Any], at_least: str
) -> None:
    _price(**price)
    body = msgspec.json.encode({"model": MODEL, "messages": MESSAGES, **fields})

    found = highest_cost(_snapshot(scene), body)

    assert found is not None and found >= Decimal(at_least)


def test_highest_cost__model_that_always_searches__counts_a_search(scene: Scene) -> None:
    _price("gpt-4o-search-preview", **SEARCHES)
    body = msgspec.json.encode({"model": "openai/gpt-4o-search-preview", "messages": MESSAGES, "max_tokens": 100})

    found = highest_cost(_snapshot(scene), body)

    assert found is not None and found >= Decimal("0.05")


@tabled
def test_highest_cost__what_the_request_does_not_ask_for__is_not_counted(scene: Scene, terms: dict[str, Any]) -> None:
    _price()
    _price("gpt-4.1", terms=terms)
    plain, other = (
        highest_cost(_snapshot(scene), msgspec.json.encode({"model": model, "messages": MESSAGES, "max_tokens": 100}))
        for model in (MODEL, "openai/gpt-4.1")
    )

    assert plain is not None and other is not None and abs(plain - other) < Decimal("0.00001")


@tabled
def test_highest_cost__what_the_integration_sets__is_counted(
    scene: Scene, parameters: dict[str, Any], of: str, at_least: str
) -> None:
    _price(**PRIORITY)
    _price("vast")
    ProviderIntegration.objects.filter(project=scene.project).update(**parameters)
    limit = {} if of == "openai/vast" else {"max_tokens": 100}

    found = highest_cost(_snapshot(scene), msgspec.json.encode({"model": of, "messages": MESSAGES, **limit}))

    assert found is not None and found >= Decimal(at_least)


@tabled
def test_highest_cost__unknown_price_or_nobody_who_serves__is_none(scene: Scene, fields: dict[str, Any]) -> None:
    _price()

    assert highest_cost(_snapshot(scene), msgspec.json.encode({"messages": MESSAGES, **fields})) is None


def test_highest_cost__picture_behind_a_link__counts_a_full_context(scene: Scene) -> None:
    _price()
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    body = {"model": MODEL, "messages": [{"role": "user", "content": [part]}], "max_tokens": 1}

    found = highest_cost(_snapshot(scene), msgspec.json.encode(body))

    assert found is not None and found >= Decimal(128_000) * Decimal("2.5") / 1_000_000


def test_create__largest_cost_and_unknown_price__400_names_who_it_is(scene: Scene) -> None:
    _price()
    judge = make_evaluator(scene.project, "judge", "judge", criteria=CRITERIA, model="openai/unheard-of")
    dataset = scene.dataset("Where?")
    fields: dict[str, Any] = {"dataset_id": str(dataset.pk), "max_cost_usd": 1}

    refused = scene.create({}, {"model": "openai/unheard-of"}, status=400, **fields)
    assert list(refused["error"]["details"]) == ["candidates.1"]

    assert "`PUT pricing/openai/unheard-of`" in refused["error"]["message"]

    refused = scene.create({}, status=400, evaluators=[{"evaluator_id": str(judge.pk)}], **fields)
    assert list(refused["error"]["details"]) == ["evaluators.0"]
    assert "the evaluator judge@1" in refused["error"]["message"]


def test_create__model_of_unknown_length__400_says_where_it_is_set(scene: Scene) -> None:
    _price("vast")
    dataset = scene.dataset("Where?")

    refused = scene.create({"model": "openai/vast"}, status=400, dataset_id=str(dataset.pk), max_cost_usd=1)

    assert "how long openai/vast may answer is not known: set `max_tokens`" in refused["error"]["message"]


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_experiment__judge_that_thinks__runs_within_its_largest_cost(scene: Scene) -> None:
    _price()
    _price("gpt-5", input_cost_per_1m="1.25", terms={"fees": SEARCHES["terms"]["fees"], **PRIORITY["terms"]})
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-5")
    dataset = scene.dataset(*(f"Question {number}" for number in range(20)))

    found = scene.over(dataset, {"max_tokens": 100}, evaluators=[{"evaluator_id": str(judge.pk)}], max_cost_usd=2)

    assert (found["state"], found["done_count"]) == ("completed", 20), found["failure"]
    assert {body["max_completion_tokens"] for body in scene.of_kind("grades")} == {8_000}


def test_estimate_and_create__judge_that_cannot_run_once__400_names_it(scene: Scene) -> None:
    _price()
    _price("gpt-4.1")
    judge = make_evaluator(
        scene.project, "judge", name="kind", criteria=CRITERIA, model="openai/gpt-4.1", max_tokens=50_000
    )
    dataset = scene.dataset("Where?")
    evaluators = [{"evaluator_id": str(judge.pk)}]
    body = {"candidates": [{"max_tokens": 5}], "dataset_id": str(dataset.pk), "evaluators": evaluators}

    refused = scene.api.post(f"{PATH}/estimate", {**body, "max_cost_usd": 0.1}, format="json")

    error = refused.json()["error"]
    assert (refused.status_code, list(error["details"])) == (400, ["max_cost_usd"])
    assert "the evaluator kind@1" in error["message"] and "`max_tokens`" in error["message"]
    assert scene.api.post(PATH, {**body, "max_cost_usd": 0.1}, format="json").status_code == 400


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_estimate__judges__are_included_until_their_scores_are_there(scene: Scene) -> None:
    _price()
    _price("gpt-4.1")
    judge = make_evaluator(scene.project, "judge", name="kind", criteria=CRITERIA, model="openai/gpt-4.1")
    dataset = scene.dataset("Where?", "When?")
    body = {"candidates": [{}], "dataset_id": str(dataset.pk), "evaluators": [{"evaluator_id": str(judge.pk)}]}

    found = scene.api.post(f"{PATH}/estimate", body, format="json").json()
    scene.over(dataset, evaluators=body["evaluators"])
    after = scene.api.post(f"{PATH}/estimate", body, format="json").json()

    # Two answers, each with 400 tokens of instructions and a grade of 60 tokens.
    assert found["judges"] == [{"title": "kind@1", "model": "openai/gpt-4.1", "cost_usd": 0.0032}]
    assert (after["judges"][0]["cost_usd"], after["total_cost_usd"]) == (0, 0)


def test_create__version_with_a_model_of_no_price__is_named_and_not_auto(scene: Scene) -> None:
    version = make_version(make_config(scene.project), model="openai/unheard-of")
    dataset = make_dataset(scene.project, items=1)

    refused = scene.create({"version_id": str(version.pk)}, dataset_id=str(dataset.pk), max_cost_usd=1, status=400)

    assert "the price of openai/unheard-of is not known" in refused["error"]["message"]


DEAR = {"prompt_tokens": 1_000, "completion_tokens": 1_000, "total_tokens": 2_000}


@pytest.mark.parametrize("scene", [[by_request(judging, usage=DEAR)]], indirect=True)
def test_experiment__largest_cost__is_never_passed_and_ends_it(scene: Scene) -> None:
    _price()
    _price("gpt-4.1")
    judge = make_evaluator(
        scene.project, "judge", "judge", criteria=CRITERIA, model="openai/gpt-4.1", max_tokens=32_768
    )
    dataset = scene.dataset(*(f"Question {number}" for number in range(40)))
    # A judge's answer may cost up to 0.34 dollars; this one costs 0.0125.
    fields: dict[str, Any] = {"evaluators": [{"evaluator_id": str(judge.pk)}], "max_cost_usd": 0.5}

    found = scene.over(dataset, {"max_tokens": 2_000}, **fields)

    assert (found["state"], found["failure_code"]) == ("failed", "budget")
    assert "max_cost_usd: the next request of the evaluator judge@1 (openai/gpt-4.1)" in found["failure"]
    row = Experiment.objects.get(pk=found["id"])
    assert row.spent_usd == len(scene.sent()) * Decimal("0.0125") <= Decimal("0.5")
    assert row.reserved_usd == 0
    assert 0 < found["done_count"] < 40


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_experiment__largest_cost_leaves_room__completes_and_books_every_request(scene: Scene) -> None:
    _price()
    _price("gpt-4.1")
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-4.1")
    dataset = scene.dataset("Where?", "When?")

    found = scene.over(dataset, {"max_tokens": 100}, evaluators=[{"evaluator_id": str(judge.pk)}], max_cost_usd=1)

    row = Experiment.objects.get(pk=found["id"])
    each = (Decimal(11) * Decimal("2.5") + Decimal(70)) / 1_000_000
    assert (found["state"], row.spent_usd, row.reserved_usd) == ("completed", 4 * each, NOTHING)
    assert found["max_cost_usd"] == 1.0


def test_experiment__budget_of_the_project_is_spent__ends_with_its_code(scene: Scene) -> None:
    make_settings(scene.project, monthly_budget_usd=0, budget_hard_stop=True)

    scene.past()

    found = scene.over(scene.dataset("Where?"))

    assert (found["state"], found["failure_code"], scene.sent()) == ("failed", "budget", [])
