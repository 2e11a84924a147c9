from __future__ import annotations

from collections.abc import Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.fakes.scripted import ScriptedServer
from tests.live.panel import Office, PanelPage, make_office
from tests.live.prompts import Team
from tests.live.service import LiveService


@pytest.fixture(scope="session")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def office(live_service: LiveService, upstream: ScriptedServer) -> Office:
    return make_office(Team(live_service, "agent panel"), upstream)


@pytest_asyncio.fixture(loop_scope="session")
async def panel(page: Page, office: Office) -> PanelPage:
    office.empty()
    made = PanelPage(page, office)
    await made.sign_in()
    await made.open()
    return made
