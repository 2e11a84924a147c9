"""Tests a provider that bills other counts than its model reports: clients see the reported ones, the price follows
from the billed ones."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import msgspec

from integrations.pricing.cost import Price, cost_of
from integrations.providers.common.usage import usage_object
from integrations.providers.usage import Usage

COMMAND_A = Price(Decimal("2.5"), Decimal("10"))
# The counts are those of a recorded answer of command-a-03-2025: 624 tokens read, 448 of them cached, 121 billed.
READ = Usage(624, 54, cache_read_tokens=448, billed_prompt_tokens=121, billed_completion_tokens=51)


def test_cost_of__billed_counts__priced_instead_of_the_others() -> None:
    cost = cost_of(READ, COMMAND_A)
    assert (cost.input, cost.output) == (Decimal("0.0003025000"), Decimal("0.0005100000"))
    assert cost.cache_read == cost.cache_write == Decimal(0)
    assert cost.total == Decimal("0.0008125000")


def test_cost_of__billed_nothing__costs_nothing() -> None:
    nothing = Usage(624, 54, billed_prompt_tokens=0, billed_completion_tokens=0)
    assert cost_of(nothing, COMMAND_A).total == 0


def test_cost_of__billed_as_counted__nothing_changes() -> None:
    assert cost_of(Usage(10, 5, billed_prompt_tokens=10, billed_completion_tokens=5), COMMAND_A) == cost_of(
        Usage(10, 5), COMMAND_A
    )


def test_cost_of__billed_counts_at_a_service_tier__have_its_price() -> None:
    flex = {"tiers": [{"service_tier": "flex", "rates": {"input": "1.25", "output": "5"}}]}
    cost = cost_of(msgspec.structs.replace(READ, service_tier="flex"), dataclasses.replace(COMMAND_A, terms=flex))
    assert cost.total == cost_of(READ, COMMAND_A).total / 2


def test_usage_object__billed_counts__shows_what_the_model_saw() -> None:
    shown = usage_object(READ)
    assert (shown["prompt_tokens"], shown["completion_tokens"], shown["total_tokens"]) == (624, 54, 678)
