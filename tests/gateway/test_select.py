"""The attempts that a request leads to, from its fields, the project's settings and the health of its providers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ModelNotFoundError
from gateway.pipeline.context import Attempt, RequestContext
from gateway.pipeline.select import select
from gateway.project_settings.model_groups import ModelGroup, Strategy
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import LazyFields, decode_request
from gateway.snapshot.project import ProjectSnapshot
from integrations.health.monitor import HealthMonitor
from integrations.health.targets import Target
from integrations.providers.base import Credentials
from integrations.providers.errors import FailureKind
from integrations.registry import default_model
from tests.tables.cases import tabled

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
NUMBERS = {
    name: number
    for number, name in enumerate(["openai", "azure_openai", "anthropic", "groq", "google", "cohere", "ollama"], 1)
}


def a_monitor() -> HealthMonitor:
    """Returns a health monitor whose clock stands still, so that an open circuit stays open."""
    return HealthMonitor("redis://127.0.0.1:1/0", clock=lambda: 1_700_000_000.0)


def chosen(
    fields: dict[str, Any],
    enabled: Sequence[str] = ("openai", "azure_openai", "anthropic", "groq"),
    health: HealthMonitor | None = None,
    groups: Sequence[ModelGroup] = (),
    session_id: str = "",
    **settings: Any,
) -> list[Attempt]:
    request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], **fields}
    body = json.dumps(request).encode()
    project_id = uuid4()
    snapshot = ProjectSnapshot(
        project_id,
        str(project_id),
        {},
        {name: Credentials(NUMBERS[name], name, "", "key") for name in enabled},
        {},
        ProjectSettings(**settings),
        1,
        groups={group.name: group for group in groups},
    )
    headers = RequestHeaders(session_id=session_id)
    context = RequestContext(snapshot, headers, body, decode_request(body), LazyFields(body))
    return select(context, health or a_monitor())


def pairs(attempts: list[Attempt]) -> list[tuple[str, str]]:
    return [(attempt.provider, attempt.model) for attempt in attempts]


def names(attempts: list[Attempt]) -> list[str]:
    return [attempt.provider for attempt in attempts]


def test_select__one_model__its_providers_the_vendor_first() -> None:
    attempts = chosen({})

    assert pairs(attempts) == [("openai", "gpt-4o"), ("azure_openai", "gpt-4o")]
    assert [(a.is_fallback, a.crosses_vendor) for a in attempts] == [(False, False), (True, True)]


def test_select__models__each_in_order_and_none_twice() -> None:
    attempts = chosen({"models": ["claude-sonnet-4-5", "gpt-4o", "openai/gpt-4o-mini"]})

    assert pairs(attempts) == [
        ("openai", "gpt-4o"),
        ("azure_openai", "gpt-4o"),
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-4o-mini"),
    ]
    assert [a.is_fallback for a in attempts] == [False, True, True, True]
    assert [a.crosses_vendor for a in attempts] == [False, True, True, False]


@tabled
def test_select__provider_object__as_documented(preferences: dict[str, Any], expected: list[str]) -> None:
    assert names(chosen({"provider": preferences})) == expected


def test_select__no_provider_left__404() -> None:
    with pytest.raises(ModelNotFoundError, match="gpt-4o"):
        chosen({"provider": {"only": ["anthropic"]}})


def test_select__allow_fallbacks_false__models_of_the_request_are_still_tried() -> None:
    attempts = chosen({"models": ["claude-sonnet-4-5"], "provider": {"allow_fallbacks": False}})

    assert names(attempts) == ["openai", "anthropic"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        # A list that names the first choice is the whole order; one that does not ranks the choices behind it.
        (("azure_openai", "openai"), ["azure_openai", "openai"]),
        (("azure_openai",), ["openai", "azure_openai"]),
    ],
)
def test_select__fallback_order__ranks_the_providers_of_a_model(order: tuple[str, ...], expected: list[str]) -> None:
    assert names(chosen({}, fallback_order=order)) == expected


def test_select__fallback_provider_without_the_model__its_preferred_else_its_default() -> None:
    attempts = chosen(
        {}, fallback_order=("anthropic", "groq"), preferred_models=("gpt-4o-mini", "anthropic/claude-haiku-4-5")
    )

    assert pairs(attempts)[2:] == [("anthropic", "claude-haiku-4-5"), ("groq", default_model("groq"))]


def test_select__fallback_provider_that_cannot_do_it__is_left_out() -> None:
    fields = {"messages": [{"role": "user", "content": [IMAGE]}]}

    assert "groq" not in names(chosen(fields, fallback_order=("groq",)))
    assert "groq" in names(chosen({}, fallback_order=("groq",)))


@pytest.mark.parametrize("settings", [{"fallback_enabled": False}, {"fallback_order": ()}])
def test_select__no_fallback_order__no_other_models(settings: dict[str, Any]) -> None:
    assert {model for _, model in pairs(chosen({}, **settings))} == {"gpt-4o"}


def test_select__fallback_disabled__first_choice_alone() -> None:
    assert names(chosen({}, fallback_enabled=False, fallback_order=("groq",))) == ["openai"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "llama-3.3-70b-versatile"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "claude-haiku-4-5"),
        ({"tools": [TOOL]}, "llama-3.3-70b-versatile"),
        ({"response_format": SCHEMA, "messages": [{"role": "user", "content": [IMAGE]}]}, "claude-haiku-4-5"),
        ({"messages": [{"role": "user", "content": "word " * 130_000}]}, "claude-haiku-4-5"),
    ],
    ids=["plain", "image", "tools", "schema-and-image", "long"],
)
def test_select__auto__first_preferred_model_that_can(fields: dict[str, Any], expected: str) -> None:
    attempts = chosen(
        {"model": "auto", **fields}, preferred_models=("groq/llama-3.3-70b-versatile", "anthropic/claude-haiku-4-5")
    )

    assert attempts[0].model == expected
    assert not attempts[0].is_fallback


def test_select__auto_and_first_preferred_is_down__the_next_one_and_no_failover() -> None:
    health = a_monitor()
    for _ in range(50):
        health.note_failure(Target(NUMBERS["openai"], "openai", "gpt-4o"), FailureKind.UNAVAILABLE, 10.0)
        health.note_failure(Target(NUMBERS["azure_openai"], "azure_openai", "gpt-4o"), FailureKind.UNAVAILABLE, 10.0)

    attempts = chosen({"model": "auto"}, health=health, preferred_models=("gpt-4o", "claude-sonnet-4-5"))

    assert attempts[0].provider == "anthropic"
    assert not attempts[0].is_fallback
    assert "openai" in names(attempts)


@pytest.mark.parametrize(
    ("fields", "settings", "reason"),
    [
        ({}, {}, "preferred models"),
        ({}, {"preferred_models": ("command-a-03-2025",)}, "preferred models"),
        (
            {"messages": [{"role": "user", "content": [IMAGE]}]},
            {"preferred_models": ("groq/llama-3.3-70b-versatile",)},
            "can do",
        ),
    ],
)  # fmt: skip
def test_select__auto_without_a_model__404_says_why(
    fields: dict[str, Any], settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ModelNotFoundError, match=reason):
        chosen({"model": "auto", **fields}, **settings)


def test_select__auto_among_the_preferred_models__stands_for_nothing() -> None:
    attempts = chosen({"model": "auto"}, ("openai", "ollama"), preferred_models=("auto", "gpt-4o"))

    assert pairs(attempts) == [("openai", "gpt-4o")]


@tabled
def test_select__nobody_serves_the_model_itself__the_others_stand_in(
    fields: dict[str, Any], stand_ins: list[bool]
) -> None:
    attempts = chosen(fields)

    assert [attempt.stands_in for attempt in attempts] == stand_ins
    assert not attempts[0].is_fallback


def test_select__sort_latency__the_faster_first_whatever_the_project_prefers() -> None:
    health = a_monitor()
    for _ in range(100):
        health.note_success(Target(NUMBERS["openai"], "openai", "gpt-4o"), 900.0)
        health.note_success(Target(NUMBERS["azure_openai"], "azure_openai", "gpt-4o"), 90.0)

    sorted_by_latency = chosen(
        {"provider": {"sort": "latency"}}, health=health, fallback_order=("openai", "azure_openai")
    )

    assert names(sorted_by_latency) == ["azure_openai", "openai"]
    assert not sorted_by_latency[0].is_fallback


PROVIDERS = st.lists(st.sampled_from([*NUMBERS, "nobody"]), unique=True, max_size=5)


@given(
    models=st.lists(
        st.sampled_from(["gpt-4o", "claude-sonnet-4-5", "groq/llama-3.3-70b-versatile", "unknown", "auto"]), max_size=5
    ),
    order=PROVIDERS,
    only=st.none() | PROVIDERS,
    ignore=PROVIDERS,
    allow=st.none() | st.booleans(),
    sort=st.none() | st.just("latency"),
    fallback_order=st.lists(st.sampled_from(list(NUMBERS)), unique=True),
)
def test_select__any_preferences__only_allowed_providers_each_once(
    models: list[str],
    order: list[str],
    only: list[str] | None,
    ignore: list[str],
    allow: bool | None,
    sort: str | None,
    fallback_order: list[str],
) -> None:
    preferences = {"order": order, "only": only, "ignore": ignore, "allow_fallbacks": allow, "sort": sort}
    fields = {"models": models, "provider": preferences}
    try:
        attempts = chosen(
            fields, tuple(NUMBERS), fallback_order=tuple(fallback_order), preferred_models=("claude-sonnet-4-5",)
        )
    except ModelNotFoundError:
        return
    assert len(set(pairs(attempts))) == len(attempts)
    assert all(name not in ignore and (only is None or name in only) for name in names(attempts))
    assert [a.is_fallback for a in attempts] == [False] + [True] * (len(attempts) - 1)


ORDERED = ModelGroup("fast", Strategy.ORDERED, {"openai/gpt-4o-mini": 1, "anthropic/claude-haiku-4-5": 1})
WEIGHTED = ModelGroup("fast", Strategy.WEIGHTED, {"openai/gpt-4o-mini": 3, "anthropic/claude-haiku-4-5": 1})


def test_select__ordered_group__its_models_in_order() -> None:
    attempts = chosen({"model": "fast"}, groups=[ORDERED])

    assert pairs(attempts) == [("openai", "gpt-4o-mini"), ("anthropic", "claude-haiku-4-5")]
    assert [(a.entry, a.is_fallback, a.stands_in) for a in attempts] == [(0, False, False), (1, True, False)]


def test_select__weighted_group__first_by_weight_and_the_rest_behind() -> None:
    firsts = [chosen({"model": "fast"}, groups=[WEIGHTED], session_id=str(number)) for number in range(1000)]

    assert all(len(attempts) == 2 for attempts in firsts)
    # The sessions are fixed, so the share is the same in every run.
    assert 0.72 < sum(attempts[0].provider == "openai" for attempts in firsts) / 1000 < 0.78


def test_select__group_without_fallback__one_model() -> None:
    for attempts in (
        chosen({"model": "fast"}, groups=[ORDERED], fallback_enabled=False),
        chosen({"model": "fast", "provider": {"allow_fallbacks": False}}, groups=[ORDERED]),
    ):
        assert pairs(attempts) == [("openai", "gpt-4o-mini")]


def test_select__group_whose_first_model_is_not_served__the_next_is_the_first_choice() -> None:
    (attempt,) = chosen({"model": "fast"}, enabled=["anthropic"], groups=[ORDERED], fallback_enabled=False)

    assert (attempt.provider, attempt.is_fallback) == ("anthropic", False)


def test_select__group_with_a_model_that_cannot_see__the_able_one_is_first() -> None:
    group = ModelGroup("eyes", Strategy.ORDERED, {"groq/llama-3.1-8b-instant": 1, "openai/gpt-4o": 1})
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]}

    assert names(chosen({"model": "eyes", "messages": [message]}, groups=[group])) == ["openai", "groq"]


def test_select__group_and_a_provider_of_any_model__is_the_group() -> None:
    assert names(chosen({"model": "fast"}, enabled=["ollama", "openai"], groups=[ORDERED])) == ["openai"]


def test_select__group_served_by_nobody__404_names_the_group() -> None:
    with pytest.raises(ModelNotFoundError, match="the group 'fast'"):
        chosen({"model": "fast"}, enabled=["groq"], groups=[ORDERED])


def test_select__group_and_fallback_order__substitutes_have_a_model_of_the_group() -> None:
    group = ModelGroup("fast", Strategy.ORDERED, {"openai/gpt-4o-mini": 1})
    attempts = chosen({"model": "fast"}, groups=[group], fallback_order=["azure_openai"])

    assert pairs(attempts) == [("openai", "gpt-4o-mini"), ("azure_openai", "gpt-4o-mini")]
