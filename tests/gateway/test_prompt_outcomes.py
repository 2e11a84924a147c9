"""Records of the calls that applications make by themselves, made of their spans."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from analytics.request_log.record import Outcome
from analytics.telemetry.prompt_calls import PromptCall
from gateway.project_settings.settings import ProjectSettings
from gateway.prompt_fetch.outcomes import record_of
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, RunningRollout
from integrations.pricing.cost import Price
from rollouts.allocation import AllocationType
from tests.gateway.prompted import PROJECT, ROLLOUT, a_version
from tests.tables.cases import tabled

STARTED_NS = 1_795_258_025_924_675_526
ATTRIBUTES = {
    "gen_ai.prompt.name": "support",
    "gen_ai.prompt.version": "3",
    "prompt_gateway.prompt.config_id": "c-1",
    "prompt_gateway.rollout_id": ROLLOUT,
    "prompt_gateway.rollout_stage": "1",
    "prompt_gateway.variant": "target",
    "prompt_gateway.allocation_unit": "12345678901234567890",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.input_tokens": "1000000",
    "gen_ai.usage.output_tokens": "500000",
    "user.id": "ann",
}


@pytest.fixture(scope="module")
def snapshot() -> ProjectSnapshot:
    """A project whose prompt `support` is in stage 1 of a rollout."""
    baseline = a_version("Old.")
    object.__setattr__(baseline, "number", 2)
    rollout = RunningRollout(ROLLOUT, 1, 50, AllocationType.USER_STICKY, False, baseline, a_version("New."))
    prompt = ManagedPrompt("c-1", "support", baseline, rollout=rollout, last_version=3)
    prices = {("openai", "gpt-4o"): Price(Decimal(2), Decimal(8), source="manual")}
    return ProjectSnapshot(PROJECT, str(PROJECT), {}, {}, prices, ProjectSettings(), 1, {"support": prompt})


def a_call(*, failed: bool = False, span_id: str = "00000000000000a1", **attributes: str | None) -> PromptCall:
    changed = {name.replace("__", "."): value for name, value in attributes.items()}
    known = {name: value for name, value in {**ATTRIBUTES, **changed}.items() if value is not None}
    return PromptCall("0" * 31 + "1", span_id, STARTED_NS, 1_500_000_000, failed, known)


def test_record__of_an_answered_call__has_arm_time_and_cost(snapshot: ProjectSnapshot) -> None:
    record = record_of(snapshot, a_call())

    assert record is not None
    assert (record.source, record.outcome, record.status_code) == ("telemetry", Outcome.SUCCESS, 200)
    assert (record.rollout_id, record.variant, record.rollout_stage) == (ROLLOUT, "target", 1)
    assert (record.alloc_unit, record.prompt_version, record.user_id) == (12345678901234567890, 3, "ann")
    assert (record.latency_ms, record.ts) == (1500, STARTED_NS // 1000)
    assert (record.cost_known, Decimal(record.cost_usd)) == (True, Decimal(6))


def test_record__of_the_same_span__has_the_same_id_and_of_another_one_another(snapshot: ProjectSnapshot) -> None:
    first, again = record_of(snapshot, a_call()), record_of(snapshot, a_call())
    other = record_of(snapshot, a_call(span_id="00000000000000a2"))

    assert first is not None and again is not None and other is not None
    assert first.request_id == again.request_id != other.request_id
    assert (UUID(first.request_id).version, UUID(first.request_id).variant) == (7, "specified in RFC 4122")
    assert UUID(first.request_id).int >> 80 == STARTED_NS // 1_000_000


@tabled
def test_record__of_a_failed_call__is_the_failure_of_the_vendor_or_of_the_request(
    snapshot: ProjectSnapshot, status: str | None, code: str, kept_status: int
) -> None:
    record = record_of(snapshot, a_call(failed=True, http__response__status_code=status))

    assert record is not None
    assert (record.outcome, record.error_code, record.status_code) == (Outcome.ERROR, code, kept_status)


@tabled
def test_record__finish_reason_of_a_vendor__in_the_words_of_chat_completions(
    snapshot: ProjectSnapshot, stated: str, kept: str
) -> None:
    record = record_of(snapshot, a_call(gen_ai__response__finish_reasons=f'["{stated}"]'))

    assert record is not None
    assert record.finish_reason == kept


@tabled
def test_record__of_no_arm_of_the_rollout__is_none(snapshot: ProjectSnapshot, attributes: dict[str, Any]) -> None:
    assert record_of(snapshot, a_call(**attributes)) is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai__usage__input_tokens": "many"},
        {"gen_ai__response__finish_reasons": "{"},
        {"gen_ai__response__finish_reasons": "[1]"},
        {"gen_ai__request__model": None},
        {"gen_ai__provider__name": "x" * 5000},
    ],
)
def test_record__of_odd_attributes__is_still_one(snapshot: ProjectSnapshot, attributes: dict[str, Any]) -> None:
    record = record_of(snapshot, a_call(**attributes))

    assert record is not None
    assert len(record.provider) <= 200
