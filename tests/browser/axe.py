"""Accessibility checks by axe-core, run in the page under test.

The script runs through the browser's debugger, so it needs no exception in the page's content security policy.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from pathlib import Path

from playwright.async_api import Page

from tests.browser.npm import extract, fetch

_PACKAGE, _VERSION = "axe-core", "4.14.1"
_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
# The rules that another colour scheme can break.
COLOR_RULES = ("color-contrast", "link-in-text-block")
_RUN = """
async (rules) => {
  const chosen = rules.length ? {runOnly: {type: "rule", values: rules}} : {};
  const found = await axe.run(document, {preload: false, resultTypes: ["violations"], ...chosen});
  return found.violations.flatMap(({id, impact, nodes}) =>
    nodes.map((node) => `${impact} ${id}: ${node.html.slice(0, 200)} (${node.failureSummary.split("\\n")[1] ?? ""})`));
}
"""


async def violations(page: Page, *rules: str) -> list[str]:
    """Checks WCAG 2.0 to 2.2 A and AA and axe-core's best practice, or only `rules`."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_source())
    found: list[str] = await page.evaluate(_RUN, rules)
    return found


@cache
def _source() -> str:
    stored = Path(sys.prefix) / f"axe-core-{_VERSION}.js"
    if not stored.exists():
        with tempfile.TemporaryDirectory(prefix="axe-", dir=stored.parent) as name:
            extract(fetch(_PACKAGE, _VERSION, _SHA512, Path(name)), Path(name))
            (Path(name) / "package" / "axe.min.js").rename(stored)
    return stored.read_text(encoding="utf-8")
