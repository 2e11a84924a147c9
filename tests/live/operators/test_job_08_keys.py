"""Job 8: add, test and rotate a provider key. Within six clicks from Home."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.actions import overflows, unlabelled
from tests.fakes.cheap_calls import cheap_call
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.live.operators.conftest import signed_in
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService

_MAX_CLICKS = 6
_KEY = FAKES["openai"].credentials("").secret
_REFUSED = "sk-canary-that-nobody-knows-91ac"


@pytest.fixture
def upstream() -> Iterator[str]:
    with DialectServer() as running:
        running.play("openai", cheap_call("openai"))
        yield FAKES["openai"].credentials(running.base_url("openai")).base_url


async def test_job_8__provider_key__added_tested_and_rotated(
    page: Page, live_service: LiveService, upstream: str
) -> None:
    team = Team(live_service, "keys")
    operator = await signed_in(page, team, make_account(team, "administrator"))
    await operator.navigate("Provider keys")
    await operator.main.get_by_role("combobox", name="Provider").fill("OpenAI")
    await operator.click(operator.main.get_by_role("button", name="Continue"))
    await operator.main.get_by_label("API key", exact=True).fill(_KEY)
    await operator.main.get_by_role("textbox", name="Address of the service").fill(upstream)
    assert not await unlabelled(page)

    await operator.click(operator.main.get_by_role("button", name="Test and save"))

    row = operator.main.get_by_role("row", name="openai")
    await expect(row).to_contain_text(f"****{_KEY[-4:]}")
    await expect(row).to_contain_text("ok")
    assert not await overflows(page)

    await operator.click(row.get_by_role("link", name="Rotate openai"))
    await operator.main.get_by_label("API key", exact=True).fill(_REFUSED)
    await operator.click(operator.main.get_by_role("button", name="Test and save"))

    # The provider refuses the new key, so the old one stays; the refusal is said without it.
    await expect(operator.main.get_by_role("alert")).to_contain_text("Not saved")
    assert _REFUSED not in await page.content()
    [stored] = operator.api("integrations")["results"]
    assert (stored["api_key"], stored["last_test"]["ok"]) == (f"****{_KEY[-4:]}", True)
    assert operator.clicks <= _MAX_CLICKS

    await operator.main.get_by_label("API key", exact=True).fill(_KEY)
    await operator.click(operator.main.get_by_role("button", name="Test and save"))
    await expect(operator.main.get_by_role("row", name="openai")).to_contain_text("ok")
