from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
import requests

from tests.live.prompts import EachWorker, Team
from tests.live.service import LiveService

_FIRST: dict[str, Any] = {"system_prompt": "You sell {{goods}}.", "model": "sandbox/mirror"}
_SECOND: dict[str, Any] = {**_FIRST, "system_prompt": "You sell <b>{{goods}}</b>."}


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "admin pages")


@pytest.fixture(scope="module")
def browser(team: Team) -> Iterator[Browser]:
    name, password = f"operator-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    arguments = ("createsuperuser", "--skip-checks", "--noinput", "--username", name, "--email", "operator@example.com")
    team.command(*arguments, DJANGO_SUPERUSER_PASSWORD=password)
    with Browser(team.service.base_url) as browser:
        browser.submit(browser.open("/admin/login/?next=/admin/"), username=name, password=password)
        yield browser


def test_rollout__moved_in_the_admin__confirmed_and_served_by_every_worker(team: Team, browser: Browser) -> None:
    prompt = team.prompt("admin", _FIRST, _SECOND)
    rollout = prompt.rollout(stages=[{"weight": 10}, {"weight": 100}])
    listed = "/admin/rollouts/rollout/"
    assert rollout.id in browser.open(listed).text

    with EachWorker(prompt) as workers:
        for action, served in (
            ("promote", "2 target"),
            ("pause", "prompt config 'admin' was skipped: its rollout is paused"),
            ("start", "2 target"),
            ("roll_back", "1 -"),
        ):
            before = rollout.shown()["transitions"]
            page = browser.open(f"{listed}{rollout.id}/change/")
            assert rollout.shown()["transitions"] == before
            answer = browser.submit(page, action=action, reason=f"because of {action}")
            assert "Rollout admin is now" in answer.text
            workers.all_serve(served)
            made = rollout.shown()["transitions"][-1]
            assert (made["action"], made["reason"]) == (action, f"because of {action}")
            assert made["actor"].startswith("user:operator-")


def test_prompt__compared_and_activated_in_the_admin__served_by_every_worker(team: Team, browser: Browser) -> None:
    prompt = team.prompt("compared", _FIRST, _SECOND)
    address = f"/admin/prompts/{prompt.config_id}/"

    page = browser.open(f"{address}?version=2&against=1").text
    # The words that differ are marked.
    assert "<ins>&lt;" in page
    assert "<b>{{goods}}</b>" not in page

    with EachWorker(prompt) as workers:
        shown = browser.open(f"{address}?version=2")
        browser.submit(shown, action="activate", version="2", reason="bold sells better")
        workers.all_serve("2 -")
        browser.submit(browser.open(address), action="undo", reason="it does not")
        workers.all_serve("1 -")


def test_pages__without_a_session__lead_to_the_login(team: Team) -> None:
    with Browser(team.service.base_url) as browser:
        for path in ("/admin/rollouts/rollout/", "/admin/prompts/promptconfig/"):
            assert "/admin/login/" in browser.open(path).url


class Browser:
    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session = requests.Session()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def open(self, path: str) -> requests.Response:
        return self._checked(self._session.get(f"{self._base_url}{path}", timeout=30))

    def submit(self, page: requests.Response, **values: str) -> requests.Response:
        form = next(form for form in _forms(page.text) if _offers(form, values))
        url = requests.compat.urljoin(page.url, form.action or page.url)
        data = [*(field for field in form.fields if field[0] not in values), *values.items()]
        return self._checked(self._session.post(url, data=data, headers={"Referer": page.url}, timeout=30))

    def _checked(self, response: requests.Response) -> requests.Response:
        assert response.status_code == 200, (response.url, response.status_code)
        errors = re.findall(r'class="error[^"]*">(.*?)<', response.text)
        assert not errors
        return response


class _Form:
    """`fields` are the hidden ones; `buttons` the (name, value) of its submit buttons; `inputs` names to fill in. A
    value of a hidden field chooses among forms as a button's does."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.fields: list[tuple[str, str]] = []
        self.buttons: set[tuple[str, str]] = set()
        self.inputs: set[str] = set()


def _offers(form: _Form, values: dict[str, str]) -> bool:
    chosen = {*form.buttons, *form.fields}
    return all(name in form.inputs or (name, value) in chosen for name, value in values.items())


def _forms(page: str) -> list[_Form]:
    parser = _FormParser()
    parser.feed(page)
    return parser.forms


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        name = found.get("name", "")
        if tag == "form" and found.get("method", "").lower() == "post":
            self.forms.append(_Form(found.get("action", "")))
        elif not self.forms or not name:
            return
        elif found.get("type") == "hidden":
            self.forms[-1].fields.append((name, found.get("value", "")))
        elif tag == "button" or found.get("type") == "submit":
            self.forms[-1].buttons.add((name, found.get("value", "")))
        elif tag in ("input", "textarea"):
            self.forms[-1].inputs.add(name)
