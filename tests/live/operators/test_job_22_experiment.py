"""Job 22: try a version over a data set, read the verdict, and roll out with that experiment as the gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.actions import overflows, unlabelled
from tests.fakes.scripted import ScriptedServer
from tests.live.operators.conftest import signed_in
from tests.live.operators.operator import Operator
from tests.live.quality_loop import DATASET, JUDGE, MARGIN, REQUESTS, RULE, Loop, make_loop
from tests.live.service import LiveService

MAX_CLICKS = 9


@pytest.fixture(scope="module")
def loop(live_service: LiveService) -> Iterator[Loop]:
    with ScriptedServer() as upstream:
        yield make_loop(live_service, upstream)


@pytest_asyncio.fixture(loop_scope="session")
async def operator(page: Page, loop: Loop) -> Operator:
    return await signed_in(page, loop.team, loop.stage.user, "/admin/datasets/")


async def test_job__data_set_tried_judged_and_rolled_out__within_nine_clicks(operator: Operator, loop: Loop) -> None:
    main = operator.main

    # Try: from the page of the data set, which the form then has chosen.
    await operator.click(main.get_by_role("link", name=DATASET, exact=True).first)
    await operator.click(main.get_by_role("link", name="New experiment"))
    await operator.choose(main.get_by_label("Prompt version of A"), f"{loop.prompt.name} version 1 (active)")
    await operator.choose(main.get_by_label("Prompt version of B"), f"{loop.prompt.name} version 2")
    for evaluator in (RULE, JUDGE):
        await operator.click(main.get_by_role("checkbox", name=evaluator, exact=True))
    await main.get_by_label("Margin").fill(str(MARGIN))
    await operator.click(main.get_by_role("button", name="Start", exact=True))

    # Read the verdict, which comes by itself.
    verdict = main.get_by_role("region", name="Verdict on B")
    await expect(verdict).to_contain_text("passed")
    await expect(main.get_by_text(f"{REQUESTS} of {REQUESTS} items judged")).to_be_visible()
    assert await unlabelled(operator.page) == []
    assert not await overflows(operator.page)

    # Roll out, from the verdict.
    await operator.click(verdict.get_by_role("link", name="Make it the gate of a rollout"))
    await expect(main.get_by_label("Data set of the gate").locator("option:checked")).to_contain_text(DATASET)
    await operator.click(main.get_by_role("button", name="Create and start"))

    await expect(main.get_by_text("running").first).to_be_visible()
    (rollout,) = operator.api("prompts/rollouts", {"config_id": loop.prompt.config_id})["results"]
    assert (rollout["status"], rollout["gate"]["state"]) == ("running", "passed")
    assert operator.clicks <= MAX_CLICKS
