"""The pages while a store hangs: a frame at once, and a message in place of the store's answer. While it answers late:
everything, a little later."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from playwright.async_api import Page, expect
from playwright.async_api import TimeoutError as BrowserTimeoutError

from tests.browser.problems import Problems
from tests.live.operators.crawl import navigation
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService, service_on_migrated_stores
from tests.live.sessions import use_session
from tests.night import cases
from tests.slow_proxy import slow_proxy

# A page stops waiting for a panel after two seconds, so that it is whole within three.
_WHOLE_MS = 3_000
# The time in which a store that answers late fills every panel of a page, which asks again by itself.
_FILLED_MS = 15_000
_BACK_MS = 30_000
# The machine may be busy with other tests.
_ATTEMPTS = 4
_TABS = 6

_WAITING = re.compile("Still loading|does not answer")
_LACKING = re.compile("Still loading|Not available now|does not answer")
_MESSAGES = ("Still loading", "does not answer")
_ROWS = """
import json
from core.models import Project
from gateway.models import Experiment
from tests.factories.everything import one_of_everything
project = Project.objects.get(pk="{project_id}")
rows = one_of_everything(project)
experiment = Experiment.objects.create(project=project, item_limit=1)
names = "analytics_reviewqueue", "prompts_promptconfig", "rollouts_rollout", "analytics_score"
print(json.dumps({{**{{name: str(rows[name].pk) for name in names}}, "experiment": str(experiment.pk)}}))
"""


@contextmanager
def hanging(service: LiveService, role: str) -> Iterator[None]:
    """Stops a store without ending it: it takes connections, and answers nothing."""
    pid = service.pid(role)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def slow_store(service: LiveService, seconds: float) -> Iterator[None]:
    """All processes reach the store through a connection that delays each of its answers."""
    address = service.var_dir / "run" / "clickhouse.url"
    announced = address.read_text(encoding="utf-8").strip()
    with slow_proxy(announced, seconds) as url:
        address.write_text(url, encoding="utf-8")
        try:
            yield
        finally:
            address.write_text(announced, encoding="utf-8")


def _pages_of_records(team: Team) -> dict[str, bool]:
    rows = json.loads(team.command("shell", "--verbosity", "0", "-c", _ROWS.format(project_id=team.project_id)))
    project, prompt, unknown = team.project_id, rows["prompts_promptconfig"], uuid.uuid4()
    return {
        "/admin/search/?q=parcel": True,
        f"/admin/search/?q={unknown}": True,
        f"/admin/analytics/requests/{project}/{unknown}/?": True,
        f"/admin/analytics/sessions/{project}/unknown?": True,
        f"/admin/reviews/{project}/{rows['analytics_reviewqueue']}/?": True,
        f"/admin/prompts/{prompt}/?": True,
        f"/admin/prompts/{prompt}/edit/?": False,
        "/admin/prompts/new/?": False,
        f"/admin/experiments/{rows['experiment']}/?": False,
        "/admin/experiments/new/?": False,
        f"/admin/rollouts/new/?config={prompt}": True,
        f"/admin/rollouts/rollout/{rows['rollouts_rollout']}/change/?": True,
        "/admin/keys/provider/?provider=openai": False,
        f"/admin/analytics/score/{rows['analytics_score']}/change/?": False,
    }


# The pages of the navigation that have nothing to show without the analytics store.
_OF_THE_STORE = ("", "analytics/requests/", "analytics/sessions/", "errors/", "usage/", "prompts/", "guardrails/")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """Its stores hang for a while in each test of this module."""
    with service_on_migrated_stores(tmp_path_factory.mktemp("away") / "var") as running:
        yield running


async def test_pages__store_hangs__frame_and_message(page: Page, service: LiveService, problems: Problems) -> None:
    team = Team(service, "store away")
    await _sign_in(page, team)
    pages = {
        address: address.split("?")[0].partition("/admin/")[2] in _OF_THE_STORE for address in await navigation(page)
    }
    for path, needs_store in _pages_of_records(team).items():
        pages[f"{service.base_url}{path}&project={team.project_id}"] = needs_store

    wrong = {}
    with hanging(service, "engine"):
        for address, needs_store in pages.items():
            text = await _whole(page, address)
            if not re.search("<h1[ >]", text) or (needs_store and not any(message in text for message in _MESSAGES)):
                wrong[address] = text
        requests = next(address for address in pages if "/analytics/requests/" in address)
        await page.goto(requests)
        await expect(page.get_by_text(_WAITING).filter(visible=True).first).to_be_visible()
    # The store is asked for signs of life now and then; its panels come by themselves when it is back.
    await expect(page.get_by_text(_WAITING)).to_have_count(0, timeout=_BACK_MS)
    assert await page.get_by_text("No requests in this range.").count()
    assert not wrong


async def test_pages__store_answers_after_three_seconds__are_filled_by_themselves(
    page: Page, service: LiveService, problems: Problems
) -> None:
    team = Team(service, "slow store")
    team.command("generate_traffic", "--project", team.project_id, "--requests", "300", "--days", "2")
    await _sign_in(page, team)
    project = f"project={team.project_id}&range=7d"
    addresses = [
        *[address.replace("range=24h", "range=7d") for address in await navigation(page)],
        *[f"{service.base_url}{path}&{project}" for path in _pages_of_records(team)],
    ]
    # A store that hangs, above, is met by every page by day too.
    addresses = list(cases(addresses, by_day=addresses[::6]))
    tabs = [page, *[await page.context.new_page() for _ in range(_TABS - 1)]]

    with slow_store(service, 3.0):
        faults = await asyncio.gather(*(_not_filled(tab, addresses[place::_TABS]) for place, tab in enumerate(tabs)))
    wrong = [fault for of_tab in faults for fault in of_tab]
    assert not wrong, "\n".join(wrong)


async def _not_filled(tab: Page, addresses: list[str]) -> list[str]:
    wrong = []
    for address in addresses:
        for _ in range(_ATTEMPTS):
            await tab.goto(address)
            lacking = tab.locator("[data-panel]").filter(has_text=_LACKING)
            with suppress(AssertionError):
                await expect(lacking).to_have_count(0, timeout=_FILLED_MS)
            critical = tab.get_by_text("critical", exact=True)
            faults = [*await lacking.all_inner_texts(), *await critical.all_inner_texts()]
            if not faults:
                break
        else:
            wrong.append(f"{address}: {faults}")
    return wrong


async def test_pages__redis_hangs__all_come(page: Page, service: LiveService, problems: Problems) -> None:
    await _sign_in(page, Team(service, "redis away"))

    with hanging(service, "redis"):
        for address in await navigation(page):
            assert re.search("<h1[ >]", await _whole(page, address)), address


async def _sign_in(page: Page, team: Team) -> None:
    await use_session(page, team, make_account(team, "administrator").name)
    await page.goto(f"{team.service.base_url}/admin/")


async def _whole(page: Page, address: str) -> str:
    for _ in range(_ATTEMPTS):
        try:
            answer = await page.context.request.get(address, timeout=_WHOLE_MS)
            assert answer.status == 200, (address, answer.status)
            return await answer.text()
        except BrowserTimeoutError:
            continue
    raise AssertionError(f"{address} was not whole within three seconds, {_ATTEMPTS} times")
