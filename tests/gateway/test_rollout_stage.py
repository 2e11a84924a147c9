"""The version of a prompt that a rollout gives to a request: arms, units, forced variants and pauses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.snapshot.prompts import RunningRollout
from prompts.errors import UnknownVariableError
from rollouts.allocation import AllocationType, UnitKind, unit_number, variant_at
from tests.gateway.prompted import ROLLOUT, a_prompt, a_version, injected, sent
from tests.tables.cases import tabled


def a_rollout(**fields: Any) -> RunningRollout:
    """From `Old.` (version 1) to `New.` (version 2)."""
    usual: dict[str, Any] = {"weight": 50, "allocation_type": AllocationType.USER_STICKY, "paused": False}
    versions = {"baseline": replace(a_version("Old."), number=1), "target": replace(a_version("New."), number=2)}
    return RunningRollout(**{"id": ROLLOUT, "stage": 5, **usual, **versions, **fields})


@pytest.mark.parametrize(("weight", "text", "variant"), [(0, "Old.", "baseline"), (100, "New.", "target")])
def test_rollout__running__serves_the_arms_version(weight: int, text: str, variant: str) -> None:
    prompt = a_prompt(a_version("Active."), rollout=a_rollout(weight=weight))

    context, state = injected({}, prompt, headers={"x-svc-user-id": "ann"})

    assert sent(context)["messages"][0]["content"] == text
    use = state.prompt
    assert (use.version, use.variant, use.rollout_id, use.stage) == (1 + (weight == 100), variant, ROLLOUT, 5)
    assert use.unit == unit_number(ROLLOUT, UnitKind.USER, "ann")
    assert not use.fallback
    assert state.warnings == ()


@tabled
def test_rollout__unit__is_what_it_goes_by_else_the_next_one_with_a_warning(
    allocation: AllocationType,
    headers: dict[str, str],
    fields: dict[str, Any],
    kind: UnitKind,
    value: str,
    fallback: bool,
) -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(allocation_type=allocation))

    _, state = injected(fields, prompt, headers=headers)

    assert state.prompt.unit == unit_number(ROLLOUT, kind, value)
    assert state.prompt.variant == variant_at(state.prompt.unit, 50).value
    assert state.prompt.fallback is fallback
    assert bool(state.warnings) is fallback
    assert all(f"allocated by {kind.value}" in warning for warning in state.warnings)


@pytest.mark.parametrize(("forced", "text"), [("target", "New."), ("baseline", "Old.")])
def test_force_variant__running_rollout__is_obeyed_and_counts_for_nothing(forced: str, text: str) -> None:
    weight = 0 if forced == "target" else 100
    prompt = a_prompt(a_version(), rollout=a_rollout(weight=weight))

    context, state = injected({}, prompt, headers={"x-svc-force-variant": forced, "x-svc-user-id": "ann"})

    assert sent(context)["messages"][0]["content"] == text
    assert (state.prompt.variant, state.prompt.unit, state.prompt.rollout_id) == (forced, 0, ROLLOUT)


def test_force_variant__no_rollout__the_active_version_with_a_warning() -> None:
    context, state = injected({}, a_prompt(a_version()), headers={"x-svc-force-variant": "target"})

    assert sent(context)["messages"][0]["content"] == "Be kind."
    assert state.warnings == ("x-svc-force-variant: no rollout of 'support' is running",)


@pytest.mark.parametrize("forced", ["", "target"])
def test_rollout__paused__falls_through_with_a_warning(forced: str) -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(paused=True))

    context, state = injected({}, prompt, headers={"x-svc-force-variant": forced})

    assert b"system" not in context.body
    assert (state.prompt.version, state.prompt.rollout_id, state.prompt.variant) == (0, "", "")
    assert state.warnings == ("prompt config 'support' was skipped: its rollout is paused",)


def test_variables__of_another_version__are_no_mistake() -> None:
    prompt = a_prompt(a_version("{{a}}"), names=frozenset({"a", "b"}))

    context, _ = injected({"prompt_variables": {"a": "1", "b": "2"}}, prompt)

    assert sent(context)["messages"][0]["content"] == "1"
    with pytest.raises(UnknownVariableError, match="'c'"):
        injected({"prompt_variables": {"a": "1", "c": "3"}}, prompt)


def test_remembered__texts_and_units__are_few() -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(target=a_version("{{n}}"), weight=100))

    for number in range(300):
        injected({"prompt_variables": {"n": str(number)}, "user": f"u{number}"}, prompt)
    injected({"prompt_variables": {"n": "x" * 20_000}, "user": "y" * 500}, prompt)

    assert prompt.rollout is not None
    assert len(prompt.rendered) <= 100
    assert len(prompt.rollout.drawn) == 300


def test_rollout__same_user_again__same_arm_and_no_mark_of_others() -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout())

    arms: dict[str, str] = {}
    for user in ("a", "b", "c", "", "a", "b", "c", ""):
        _, state = injected({"user": user}, prompt)
        assert state.prompt.fallback is (user == "")
        assert arms.setdefault(user, state.prompt.variant) == state.prompt.variant
