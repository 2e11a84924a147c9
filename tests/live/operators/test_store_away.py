"""The pages while a store hangs: a frame at once, and a message in the place of what it would have answered."""

from __future__ import annotations

import json
import os
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import Page
from playwright.async_api import TimeoutError as BrowserTimeoutError

from tests.browser.actions import sign_in
from tests.browser.problems import Problems
from tests.live.conftest import StartService
from tests.live.operators.crawl import navigation
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService

# A panel gives up after two seconds, so that a page is whole within three.
_WHOLE_MS = 3_000
# The machine may be busy with other tests.
_ATTEMPTS = 4

_MESSAGES = ("Not available now", "does not answer")
_ROWS = """
import json
from core.models import Project
from gateway.models import Trial
from tests.factories.everything import one_of_everything
project = Project.objects.get(pk="{project_id}")
rows = one_of_everything(project)
trial = Trial.objects.create(project=project, input_limit=1)
names = "analytics_reviewqueue", "prompts_promptconfig", "rollouts_rollout", "analytics_score"
print(json.dumps({{**{{name: str(rows[name].pk) for name in names}}, "trial": str(trial.pk)}}))
"""


@contextmanager
def hanging(service: LiveService, role: str) -> Iterator[None]:
    """Stops a store without an end: connections are taken, and nothing is answered."""
    pid = service.pid(role)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _pages_of_records(team: Team) -> dict[str, bool]:
    """Returns the pages that the navigation does not have; true for those that need the analytics store."""
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
        f"/admin/trials/{rows['trial']}/?": False,
        "/admin/trials/new/?": False,
        f"/admin/rollouts/new/?config={prompt}": True,
        f"/admin/rollouts/rollout/{rows['rollouts_rollout']}/change/?": True,
        "/admin/keys/provider/?provider=openai": False,
        f"/admin/analytics/score/{rows['analytics_score']}/change/?": False,
    }


# The pages of the navigation that have nothing to show without the analytics store.
_OF_THE_STORE = ("", "analytics/requests/", "analytics/sessions/", "errors/", "usage/", "prompts/", "guardrails/")


async def test_pages__store_hangs__frame_and_message(
    page: Page, start_service: StartService, problems: Problems
) -> None:
    service = start_service()
    team = Team(service, "store away")
    account = make_account(team, "administrator")
    await sign_in(page, service.base_url, account.name, account.password)
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
    assert not wrong
    # The store is asked for signs of life now and then; until it gives one, its questions are refused.
    await page.goto(next(address for address in pages if "/analytics/requests/" in address))
    while await page.get_by_role("alert").count():
        await page.reload()


async def test_pages__redis_hangs__all_come(page: Page, start_service: StartService, problems: Problems) -> None:
    service = start_service()
    team = Team(service, "redis away")
    account = make_account(team, "administrator")
    await sign_in(page, service.base_url, account.name, account.password)

    with hanging(service, "redis"):
        for address in await navigation(page):
            assert re.search("<h1[ >]", await _whole(page, address)), address


async def _whole(page: Page, address: str) -> str:
    """Returns the text of a page as it came, all of it within three seconds."""
    for _ in range(_ATTEMPTS):
        try:
            answer = await page.context.request.get(address, timeout=_WHOLE_MS)
            assert answer.status == 200, (address, answer.status)
            return await answer.text()
        except BrowserTimeoutError:
            continue
    raise AssertionError(f"{address} was not whole within three seconds, {_ATTEMPTS} times")
