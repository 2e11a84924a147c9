from __future__ import annotations

import uuid

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.live.operators.operator import Operator
from tests.live.playground import Account, make_account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.live.sessions import use_session
from tests.night import examples

REQUESTS = examples(20_000, 200_000)
LAST_DAY = 2_500


@pytest.fixture(scope="session")
def busy_team(live_service: LiveService) -> Team:
    team = Team(live_service, f"busy {uuid.uuid4().hex[:6]}")
    history = ("generate_traffic", "--project", team.project_id)
    team.command(*history, "--requests", str(REQUESTS), "--content-days", "10")
    team.command(*history, "--requests", str(LAST_DAY), "--days", "1", "--seed", "2")
    return team


@pytest.fixture(scope="session")
def administrator(busy_team: Team) -> Account:
    return make_account(busy_team, "administrator")


@pytest_asyncio.fixture(loop_scope="session")
async def operator(page: Page, busy_team: Team, administrator: Account) -> Operator:
    return await signed_in(page, busy_team, administrator)


async def signed_in(page: Page, team: Team, account: Account, path: str = "/admin/") -> Operator:
    await use_session(page, team, account.name)
    person = Operator(page, team)
    await person.open(path)
    return person
