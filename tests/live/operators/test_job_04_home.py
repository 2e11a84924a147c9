"""Job 4: which provider is slow or degraded? Home says so without a click."""

from __future__ import annotations

import contextlib
import re

import openai
from playwright.async_api import expect

from tests.live.operators.operator import Operator
from tests.waiting import wait_until

_CALLS = 30


def _fail(operator: Operator) -> None:
    with operator.team.client() as client:
        for _ in range(_CALLS):
            with contextlib.suppress(openai.APIStatusError):
                client.chat.completions.create(
                    model="sandbox/error-503", messages=[{"role": "user", "content": "hello"}]
                )


def _sandbox(operator: Operator) -> dict[str, object]:
    rows = operator.api("metrics/provider-latency")["providers"]
    found: dict[str, object] = next(row for row in rows if row["provider"] == "sandbox")
    return found


async def test_home__provider_in_trouble__is_named_with_its_state(operator: Operator) -> None:
    _fail(operator)
    wait_until(lambda: _sandbox(operator)["status"] != "healthy", what="the sandbox to be in trouble")

    await operator.open_whole("/admin/")

    providers = operator.main.get_by_role("region", name="Providers, last five minutes")
    row = providers.get_by_role("row").filter(has_text="sandbox")
    # A circuit that rests lets a request try again after a while: the state is one or the other.
    await expect(row).to_contain_text(re.compile("degraded|down"))
    for heading in ("State", "p50", "p95", "Errors", "Calls"):
        await expect(providers.get_by_role("columnheader", name=heading)).to_be_visible()
    await expect(operator.main.get_by_role("list", name="What is wrong now")).to_contain_text(
        re.compile("sandbox is (degraded|down)")
    )
    assert operator.clicks == 0
