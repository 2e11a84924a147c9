"""Job 13: connect an application. From an empty project within three clicks: make a key, choose a client, copy. The
page then links the request that the pasted program has sent. Nobody reads the README."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.actions import overflows
from tests.clients.agents.programs import PROGRAMS
from tests.clients.clients import ENVIRONMENTS
from tests.clients.conftest import made
from tests.live.operators.conftest import signed_in
from tests.live.operators.looks import faults_of
from tests.live.operators.operator import Operator
from tests.live.playground import Account, make_account
from tests.live.prompts import Project, Team, command
from tests.live.service import LiveService
from tests.night import cases

_MAX_CLICKS = 3
_PROGRAM_SECONDS = 120
_PATH = "/admin/connect/"
_NODE = "node/node_modules/node-*/bin"
# The agents as people call them, by their names in the matrix of coding agents.
_AGENTS = {"claude_code": "claude", "codex": "codex"}
# The variables that keep the agents from calling other hosts.
_OFFLINE = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class EmptyProject(Team):
    """A project as the first start makes it, without a setting."""

    def __init__(self, service: LiveService) -> None:
        name = f"empty {uuid.uuid4().hex[:6]}"
        given = json.loads(command(service, "bootstrap", "--name", name, "--json"))
        Project.__init__(self, service, given["project_id"], given["api_key"])


@pytest.fixture(scope="module")
def programs() -> None:
    """Has the programs installed, as their lock files name them."""
    made("clients")
    made(".venv-clients/agents")


@pytest.fixture(scope="module")
def project(live_service: LiveService) -> EmptyProject:
    return EmptyProject(live_service)


@pytest.fixture(scope="module")
def account(project: EmptyProject) -> Account:
    return make_account(project, "administrator")


async def test_job_13__home_of_an_empty_project__says_how_and_links_the_first_request(
    page: Page, live_service: LiveService, tmp_path: Path
) -> None:
    team = EmptyProject(live_service)
    operator = await signed_in(page, team, make_account(team, "administrator"))
    await expect(_steps(operator)).to_contain_text("Waiting for the first request")
    assert await faults_of(page) == []

    text = await _copied_with_key(operator, "curl")
    answer = await asyncio.to_thread(_run, "curl", text, tmp_path)

    assert json.loads(answer)["choices"][0]["message"]["content"] == "Hello"
    await _follow(operator)
    assert operator.clicks <= _MAX_CLICKS + 1
    # Home is about the traffic from now on.
    await operator.open("/admin/")
    assert await operator.main.get_by_role("region", name="Connect an application").count() == 0


@pytest.mark.parametrize(
    "client",
    cases(["Python", "TypeScript", "Anthropic SDK", "Claude Code", "Codex"], by_day=["TypeScript", "Claude Code"]),
)
async def test_job_13__snippet_of_a_client__is_answered_and_its_request_is_linked(
    page: Page, programs: None, project: EmptyProject, account: Account, tmp_path: Path, client: str
) -> None:
    operator = await signed_in(page, project, account, _PATH)

    text = await _copied_with_key(operator, client)
    assert operator.clicks <= _MAX_CLICKS
    answer = await asyncio.to_thread(_run, client, text, tmp_path)

    assert answer.strip()
    await _follow(operator)
    facts = operator.main
    await expect(facts).to_contain_text("200")
    assert not await overflows(page)


async def test_connect__keyboard_alone__moves_over_the_tabs(
    page: Page, project: EmptyProject, account: Account
) -> None:
    operator = await signed_in(page, project, account, _PATH)
    await operator.main.get_by_role("radio", name="curl").focus()

    await page.keyboard.press("ArrowRight")

    await expect(operator.main.get_by_role("radio", name="Python")).to_be_checked()
    await expect(operator.main.get_by_role("region", name="Python: hello.py")).to_be_visible()
    await expect(operator.main.get_by_role("region", name="curl: In a terminal")).to_be_hidden()
    assert await faults_of(page) == []


async def test_connect__without_scripts__tabs_keys_and_steps_work(
    chromium: Browser, page: Page, project: EmptyProject, account: Account
) -> None:
    operator = await signed_in(page, project, account, _PATH)
    state = await page.context.storage_state()
    context = await chromium.new_context(java_script_enabled=False, storage_state=state)
    plain = await context.new_page()
    await plain.goto(page.url)
    main = plain.get_by_role("main")
    await main.get_by_role("button", name="Make an application key").click()

    await main.get_by_text("Codex", exact=True).click()

    await expect(main.get_by_role("region", name="Codex: In a terminal")).to_contain_text("svc_")
    await expect(main.get_by_role("listitem").filter(has_text="First request")).to_contain_text("Waiting")
    await expect(main.get_by_role("link", name="Look again")).to_be_visible()
    await context.close()
    assert operator.clicks == 0


async def test_connect__from_the_account_menu__reached_on_every_page(
    page: Page, project: EmptyProject, account: Account
) -> None:
    operator = await signed_in(page, project, account, "/admin/errors/")
    await operator.click(page.get_by_role("banner").get_by_text(account.name))

    await operator.click(page.get_by_role("link", name="Connect an application"))

    await expect(operator.main.get_by_role("heading", level=1)).to_have_text("Connect an application")


def _steps(operator: Operator) -> Locator:
    return operator.main.get_by_role("region", name="Connect an application")


async def _copied_with_key(operator: Operator, client: str) -> str:
    page = operator.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await operator.click(operator.main.get_by_role("button", name="Make an application key"))
    secret = await operator.main.locator("#new-key").inner_text()
    if client != "curl":
        await operator.click(operator.main.get_by_text(client, exact=True))
    # The last button of the tabs of programs copies the program; what is behind the command of an agent is its file.
    buttons = operator.main.get_by_role("button", name=f"Copy {client}: ")
    await operator.click(buttons.nth(0 if client == "curl" else 1))
    text: str = await page.evaluate("navigator.clipboard.readText()")
    assert secret in text
    assert secret not in page.url
    assert secret not in operator.team.service.log
    return text


async def _follow(operator: Operator) -> None:
    await operator.click(operator.main.get_by_role("link", name="See the request"))
    await expect(operator.page.get_by_role("heading", level=1)).to_contain_text("Request")


def _run(client: str, text: str, folder: Path) -> str:
    environment = {"PATH": _path(folder), "HOME": str(folder), "TMPDIR": str(folder), **_OFFLINE}
    words = _words(client, text, folder)
    done = subprocess.run(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROGRAM_SECONDS
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def _words(client: str, text: str, folder: Path) -> list[str]:
    if client == "TypeScript":
        # Node looks for packages from the script's own folder.
        script = ENVIRONMENTS / "node" / f"{folder.name}.mts"
        script.write_text(text)
        return ["node", "--no-warnings", str(script)]
    if client in ("Python", "Anthropic SDK"):
        (folder / "hello.py").write_text(text)
        return [str(ENVIRONMENTS / "python" / "bin" / "python"), "hello.py"]
    return ["/bin/sh", "-c", text]


def _path(folder: Path) -> str:
    programs = folder / "bin"
    programs.mkdir()
    for program in PROGRAMS:
        if program.name in _AGENTS and list(ENVIRONMENTS.glob(program.file)):
            (programs / _AGENTS[program.name]).symlink_to(program.path())
    return os.pathsep.join([str(programs), *map(str, ENVIRONMENTS.glob(_NODE)), os.environ["PATH"]])
