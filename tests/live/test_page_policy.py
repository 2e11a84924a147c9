"""Every page in a browser under the content security policy, which no page may break."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.async_api import Page

from tests.browser.actions import sign_in
from tests.browser.problems import Problems
from tests.live.prompts import Team
from tests.live.service import LiveService

_PROMPT = {"system_prompt": "You sell {{goods}}.", "model": "sandbox/mirror"}
_VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")
# Visiting these paths would change something or download a file.
_LEFT_OUT = (
    "/admin/logout/",
    "/admin/jsi18n/",
    "/static/",
    "/admin/usage/export/",
    "/admin/analytics/requests/export/",
)


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    """A project with something to show on the pages that list things."""
    made = Team(live_service, "page policy")
    second = {**_PROMPT, "system_prompt": "You sell <b>{{goods}}</b>."}
    made.prompt("shown", _PROMPT, second).rollout(stages=[{"weight": 10}, {"weight": 100}])
    account = ("--username", "policy", "--email", "policy@example.com")
    made.command("createsuperuser", "--skip-checks", "--noinput", *account, DJANGO_SUPERUSER_PASSWORD="a long password")
    return made


async def test_admin__every_page_that_is_linked__keeps_to_the_policy(page: Page, team: Team) -> None:
    """Visits one page of each kind; the fixture `page` fails the test for a breach of the policy."""
    base = team.service.base_url
    await sign_in(page, base, "policy", "a long password")
    waiting, kinds = ["/admin/"], set[str]()
    while waiting:
        address = waiting.pop()
        path = urlsplit(address).path
        kind = _VARYING.sub("*", path)
        if kind in kinds or path.startswith(_LEFT_OUT):
            continue
        kinds.add(kind)
        answer = await page.goto(base + address)
        assert answer is not None and answer.status == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy, path
        waiting.extend(await _linked(page))

    assert len(kinds) >= 40, sorted(kinds)
    for part in ("rollouts/rollout/*/change/", "prompts/promptconfig/*/diff/", "gateway/playground/", "agent/panel/"):
        assert f"/admin/{part}" in kinds


async def _linked(page: Page) -> list[str]:
    """Returns the linked addresses of this service below `/admin/`, with their queries."""
    found: list[str] = await page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
    split = [urlsplit(urljoin(page.url, address)) for address in found if address.startswith("http")]
    return sorted({f"{one.path}?{one.query}" for one in split if one.path.startswith("/admin/")})


@pytest.mark.parametrize("path", ["/", "/api/docs/", "/api/redoc/", "/admin/login/"])
async def test_page__for_everybody__keeps_to_the_policy(page: Page, live_service: LiveService, path: str) -> None:
    answer = await page.goto(live_service.base_url + path, wait_until="networkidle")
    assert answer is not None and answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_page__that_is_not_there__leads_back(page: Page, live_service: LiveService, problems: Problems) -> None:
    problems.expect("status of 404")
    answer = await page.goto(f"{live_service.base_url}/nowhere")
    assert answer is not None and answer.status == 404
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    await page.get_by_role("link", name="Start page").click()
    await page.get_by_role("link", name="Admin").click()
    await page.wait_for_url("**/admin/login/**")
