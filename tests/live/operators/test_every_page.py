"""Every page of the operators' product, at both widths, light and dark, and without scripts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Response, expect

from core.rights.checks import page_names
from core.rights.table import MODELS, PAGES
from core.roles import Right
from core.ui.registry import registered_pages
from tests.browser.actions import sign_in
from tests.browser.problems import Problems
from tests.live.operators.crawl import NOT_FOLLOWED, kind_of, kind_of_name, navigation, one_of_each_kind, path_of
from tests.live.operators.everything import Everything
from tests.live.operators.looks import WIDE, faults_beside_agent, faults_of, faults_of_answer, words_of_the_code
from tests.live.playground import make_account
from tests.live.service import LiveService
from tests.night import NIGHT

_MIN_CHARACTERS = 40
# Pages that no link of a signed-in superuser leads to, and pages that are asked for by POST.
_WITHOUT_LINK = {
    *("login", "sign_in", "sign_in_callback", "autocomplete", "password_change_done", "agent_panel_rendered"),
    # It stands between the password and the pages.
    "second_factor_code",
    # It is copied, and leads to the page of the request.
    "request_link",
    # It is sent to somebody without an account.
    "invitation",
}
# Django's own lists of every table show rows as they are stored.
_ROWS = {f"{model}_{page}" for model in MODELS for page in ("changelist", "add", "change")} - {
    page.name for page in registered_pages()
}
# The browser would keep an empty form from being sent, and some forms are folded.
_OPEN_FORMS = """
() => {
  document.querySelectorAll("main form").forEach((form) => { form.noValidate = true; });
  document.querySelectorAll("main details").forEach((details) => { details.open = true; });
}
"""
# The address of a form, the button that sends it, and what is filled in before.
_FORMS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("/admin/settings/?", "Review changes", {"Attempts at one provider": "7"}),
    ("/admin/limits/?", "Review changes", {}),
    ("/admin/guardrails/?", "Review changes", {}),
    ("/admin/keys/provider/?provider=bedrock&", "Save without a test", {}),
    ("/admin/keys/api/?", "Make key", {}),
    ("/admin/members/?", "Add member", {}),
    ("/admin/prompts/new/?", "Save", {}),
    ("/admin/prompts/new/?", "Check", {"System prompt": "You sell {{ goods }}."}),
    # A prompt that is saved leads to its page with a message.
    ("/admin/prompts/new/?", "Save", {"Name": "written", "System prompt": "Be brief."}),
    ("/admin/evaluators/new/?kind=contains&", "Make the evaluator", {}),
    ("/admin/evaluators/new/?kind=judge&", "Room for one more criterion and label", {}),
    ("/admin/evaluators/new/?kind=length&", "Try it", {"At most": "50"}),
    ("/admin/online-evaluations/?", "Begin to score", {"Budget of a month": "-1"}),
    ("/admin/experiments/new/?", "Start", {}),
    ("/admin/reviews/?", "Make the queue", {}),
    ("/admin/datasets/?", "Make the data set", {}),
    ("/admin/datasets/?take=1&", "Add to the data set", {}),
    ("/admin/alerts/new/?", "Save alert", {}),
    ("/admin/alerts/channels/?", "Save channel", {}),
    ("/admin/core/project/add/?", "Save", {}),
)


@pytest.fixture(scope="module")
def everything(live_service: LiveService) -> Everything:
    return Everything(live_service, f"everything {uuid.uuid4().hex[:6]}")


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(chromium: Browser) -> AsyncIterator[Page]:
    context = await chromium.new_context(viewport=WIDE, locale="en-GB", timezone_id="America/New_York")
    problems = Problems(context)
    # The pages of failures are answers of 403 and 404.
    context.on("response", lambda answer: problems.expect(f"status of {answer.status}") if _fails(answer) else None)
    yield await context.new_page()
    await problems.settle()
    problems.check()
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def superuser(visitor: Page, everything: Everything) -> Page:
    await sign_in(visitor, everything.service.base_url, everything.superuser.name, everything.superuser.password)
    return visitor


def _fails(answer: Response) -> bool:
    return answer.status in (403, 404)


def _alike(kind: str) -> str:
    return kind.rpartition("_")[2] if kind in _ROWS else kind


def _shown(wrong: Mapping[str, list[str]]) -> str:
    return "\n".join(f"{place}\n  " + "\n  ".join(found) for place, found in wrong.items() if found)


def _first(everything: Everything) -> list[str]:
    base, project = everything.service.base_url, f"project={everything.project_id}"
    pages = (
        "/admin/?range=7d&",
        "/admin/keys/provider/?provider=bedrock&",
        "/admin/reviews/?outcome=success&",
        "/admin/search/?q=parcel&",
        "/admin/search/?",
    )
    return [f"{base}{page}{project}" for page in pages]


async def test_every_page__looked_at__accessible_and_inside_its_window(superuser: Page, everything: Everything) -> None:
    wrong: dict[str, list[str]] = {}
    kinds: set[str] = set()
    alike: set[str] = set()
    async for address, answer in one_of_each_kind(superuser, *_first(everything)):
        kind = kind_of(address)
        kinds.add(kind)
        assert answer.status == 200, address
        whole = NIGHT or _alike(kind) not in alike
        alike.add(_alike(kind))
        wrong[path_of(address)] = [
            *await faults_of(superuser, whole=whole),
            *await faults_of_answer(superuser, answer),
            *(await faults_beside_agent(superuser) if whole else []),
        ]
        if kind not in _ROWS:
            wrong[path_of(address)] += await words_of_the_code(superuser)

    assert not _shown(wrong), _shown(wrong)
    expected = {kind_of_name(name) for name in page_names() if PAGES[name] is not Right.NOBODY}
    assert expected - kinds - NOT_FOLLOWED - _WITHOUT_LINK == set()


async def test_every_page__without_scripts__says_the_same(
    chromium: Browser, superuser: Page, everything: Everything
) -> None:
    await superuser.goto(f"{everything.service.base_url}/admin/?project={everything.project_id}")
    addresses = await navigation(superuser)
    state = await superuser.context.storage_state()
    context = await chromium.new_context(java_script_enabled=False, storage_state=state)
    plain = await context.new_page()
    wrong = {}
    for address in addresses:
        await plain.goto(address)
        text = await plain.get_by_role("main").inner_text()
        if "Loading…" in text or len(text) < _MIN_CHARACTERS:
            wrong[path_of(address)] = text
    await context.close()

    assert not wrong


async def test_answers_to_forms__looked_at__accessible_and_inside_their_window(
    superuser: Page, everything: Everything
) -> None:
    """Sends each form as it is, so that it comes back with its errors, and reviews a change of the settings."""
    wrong: dict[str, list[str]] = {}
    for number, (path, button, fields) in enumerate(_FORMS):
        await superuser.goto(f"{everything.service.base_url}{path}project={everything.project_id}")
        await superuser.evaluate(_OPEN_FORMS)
        main = superuser.get_by_role("main")
        for label, value in fields.items():
            await main.get_by_label(label).first.fill(value)
        await main.get_by_role("button", name=button, exact=True).first.click()
        await expect(superuser.get_by_role("heading", level=1)).to_be_visible()
        # Errors look alike in all forms.
        found = await faults_of(superuser, whole=NIGHT or not number)
        wrong[f"{path} {button}"] = [*found, *await words_of_the_code(superuser)]

    assert not _shown(wrong), _shown(wrong)


async def test_pages_of_failures_and_login__looked_at__accessible_and_inside_their_window(
    visitor: Page, everything: Everything
) -> None:
    base, project = everything.service.base_url, everything.project_id
    wrong: dict[str, list[str]] = {}
    await visitor.goto(f"{base}/admin/login/?next=/admin/")
    wrong["login"] = await faults_of(visitor)
    await visitor.get_by_label("Username:").fill("nobody")
    await visitor.get_by_label("Password:").fill("wrong")
    await visitor.get_by_role("button", name="Log in").click()
    await expect(visitor.get_by_text("Username or password is wrong.")).to_be_visible()
    wrong["login refused"] = await faults_of(visitor)
    reader = make_account(everything, "reader")
    await sign_in(visitor, base, reader.name, reader.password)
    unknown = uuid.uuid4()
    for path, status in (
        ("/nowhere", 404),
        ("/admin/nowhere/", 404),
        ("/admin/settings/", 403),
        (f"/admin/prompts/{unknown}/", 404),
        (f"/admin/analytics/requests/{project}/{unknown}/", 404),
        (f"/admin/analytics/sessions/{project}/unknown", 404),
        ("/admin/analytics/requests/?colour=red", 200),
        ("/admin/usage/?range=custom&start=yesterday", 200),
    ):
        answer = await visitor.goto(f"{base}{path}")
        assert answer is not None and answer.status == status, path
        wrong[path] = [*await faults_of(visitor), *await faults_of_answer(visitor, answer)]

    assert not _shown(wrong), _shown(wrong)
