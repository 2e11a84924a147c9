"""Random requests and answers, with plans and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.scripted import CREATED, ScriptedServer, answer, raw
from tests.gateway import service
from tests.gateway.plans.both import PlansService, same
from tests.gateway.service import Gateway
from tests.gateway.test_plain_requests import FIELDS, MESSAGE, TEXT
from tests.night import examples

SCRIPT = "random"
MODELS = st.sampled_from(["gpt-4o", "openai/gpt-4o", f"openai/{service.PRICED_MODEL}", "groq/llama-3.3-70b-versatile"])
BODIES = st.fixed_dictionaries(
    {"model": MODELS, "messages": st.lists(MESSAGE, min_size=1, max_size=3)},
    # Most requests have few fields.
    optional={name: value for name, value in FIELDS.items() if name not in ("models", "provider")},
)
PLAIN_BODIES = st.fixed_dictionaries(
    {
        "model": MODELS,
        "messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": TEXT}), min_size=1),
    },
    optional={"temperature": st.just(0.5), "user": TEXT, "stream": st.just(False), "anything": TEXT},
)
ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "x-svc-session-id": ASCII,
        "x-svc-user-id": ASCII,
        "x-request-id": ASCII,
        "traceparent": st.sampled_from(["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x"]),
        "cache-control": st.sampled_from(["no-cache", "max-age=0"]),
        "x-claude-code-session-id": ASCII,
        "openai-beta": ASCII,
        "user-agent": ASCII,
    },
)
COUNT = st.integers(0, 3000) | st.integers(-1, 10**15)
USAGE = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": COUNT,
        "completion_tokens": COUNT,
        "total_tokens": COUNT,
        "prompt_tokens_details": st.none() | st.fixed_dictionaries({"cached_tokens": COUNT}),
        "completion_tokens_details": st.none() | st.fixed_dictionaries({"reasoning_tokens": COUNT}),
        "cost": st.floats(0, 1),
    },
)
FULL_USAGE = st.fixed_dictionaries(
    {
        "prompt_tokens": st.integers(1, 100_000),
        "completion_tokens": st.integers(1, 100_000),
        "total_tokens": st.integers(0, 200_000),
    },
    optional={
        "prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": st.integers(0, 100_000)}),
    },
)
CHOICE = st.fixed_dictionaries(
    {"index": st.just(0), "message": st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXT})},
    optional={"finish_reason": st.sampled_from(["stop", "length", "eos", "tool_calls", "content_filter", None])},
)
ANSWERS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICE, max_size=2)},
    optional={
        "id": ASCII,
        "created": st.sampled_from([0, CREATED]),
        "model": ASCII,
        "usage": USAGE,
        "error": st.none(),
    },
)
CONFORMING = st.fixed_dictionaries(
    {
        "id": ASCII,
        "object": st.just("chat.completion"),
        "created": st.just(CREATED),
        "model": ASCII,
        "choices": st.lists(
            st.fixed_dictionaries(
                {
                    "index": st.just(0),
                    "message": st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXT}),
                    "finish_reason": st.sampled_from(["stop", "length"]),
                }
            ),
            min_size=1,
            max_size=2,
        ),
        "usage": FULL_USAGE,
    },
    optional={"service_tier": st.sampled_from([None, "default", "flex"])},
)


@pytest.fixture(scope="module")
def gateway(plans: PlansService) -> Iterator[Gateway]:
    with ScriptedServer() as server:
        server.play(SCRIPT, answer())
        places = dict.fromkeys(("openai", "groq"), server.base_url(SCRIPT))
        made = plans.new_project(base_urls=places, routing={"retry_enabled": False})
        made.upstream = server
        same(made, server, msgspec.json.encode({"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}))
        yield made


@given(request=PLAIN_BODIES | BODIES, headers=HEADERS, answered=CONFORMING | ANSWERS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_exchange__with_and_without_plans__is_the_same(
    gateway: Gateway, request: dict[str, Any], headers: dict[str, str], answered: dict[str, Any]
) -> None:
    gateway.upstream.play(SCRIPT, raw(200, msgspec.json.encode(answered), {"content-type": "application/json"}))

    same(gateway, gateway.upstream, msgspec.json.encode(request), headers=headers)


def test_random_exchanges__that_conform__are_answered_by_plans(gateway: Gateway) -> None:
    answered_by_plans = []

    @given(request=PLAIN_BODIES, answered=CONFORMING)
    @settings(deadline=None, max_examples=examples(5, 20), suppress_health_check=[HealthCheck.too_slow])
    def ask(request: dict[str, Any], answered: dict[str, Any]) -> None:
        gateway.upstream.play(SCRIPT, raw(200, msgspec.json.encode(answered), {"content-type": "application/json"}))
        answered_by_plans.append(same(gateway, gateway.upstream, msgspec.json.encode(request))[1])

    ask()

    assert all(answered_by_plans)
