"""A change of settings reaches every worker, whichever stage applies it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from gateway.pipeline.reasoning import INTROSPECTION
from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import body

Seen = Callable[[Gateway, httpx2.Response], bool]


def _reasoning_was_requested(gateway: Gateway, response: httpx2.Response) -> bool:
    return INTROSPECTION in gateway.record(response).attributes


def _recorded_no_text(gateway: Gateway, response: httpx2.Response) -> bool:
    (entry,) = gateway.service.entries(response.headers["x-request-id"])
    return not entry.request


GROUPS: dict[str, tuple[dict[str, Any], Seen]] = {
    "limits": (
        {"rate_limit_enabled": True, "rate_limit_rpm": 1000},
        lambda _, response: "x-ratelimit-limit-requests" in response.headers,
    ),
    "end_users": (
        {"end_user_rpm": 1000},
        lambda _, response: "x-ratelimit-limit-requests" in response.headers,
    ),
    "guardrails": (
        {"guardrails": {"trust_mode": "enforce", "max_prompt_tokens": 1}},
        lambda _, response: response.status_code == 400,
    ),
    "cache": ({"cache_ttl_seconds": 60}, lambda _, response: response.headers["x-svc-cache"] != "skip"),
    "reasoning": ({"introspection_enabled": True}, _reasoning_was_requested),
    "logging": ({"log_content": False}, _recorded_no_text),
}


@pytest.mark.parametrize("group", GROUPS)
def test_put__reaches_both_workers_and_so_does_taking_it_back(scripted: Scripted, group: str) -> None:
    settings, seen = GROUPS[group]
    gateway, _ = scripted(play.answer())
    service = gateway.service
    numbers = iter(range(1_000_000))

    def ask(port: int) -> bool:
        return seen(gateway, gateway.post(body(model="gpt-5", seed=next(numbers), user="ann"), port=port))

    def becomes(expected: bool, port: int) -> bool:
        return service.until(partial(ask, port), lambda found: found is expected) is expected

    assert [ask(port) for port in service.ports] == [False, False]
    for given, expected in ((settings, True), ({}, False)):
        assert gateway.manage("PUT", "settings", given).status_code == 200
        assert [becomes(expected, port) for port in service.ports] == [True, True]
