from __future__ import annotations

from playwright.async_api import Page, expect

# The selectors of fields and buttons that lack an accessible name.
_UNLABELLED = """
() => [...document.querySelectorAll("main input, main select, main textarea, main button")]
  .filter((control) => control.type !== "hidden" && control.checkVisibility())
  .filter((control) => !(control.labels?.length || control.ariaLabel || control.textContent.trim()
    || control.getAttribute("aria-labelledby") || (control.type === "submit" && control.value)))
  .map((control) => control.outerHTML)
"""

# The innermost elements that reach beyond the window's right edge.
_WIDER = """
() => {
  const wide = [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > window.innerWidth && element.checkVisibility());
  return wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)))
    .map((element) => element.outerHTML.slice(0, 300));
}
"""


async def sign_in(page: Page, base_url: str, name: str, password: str) -> None:
    """The management API accepts the admin's session as well."""
    await page.goto(f"{base_url}/admin/login/?next=/admin/")
    await page.get_by_label("Username:").fill(name)
    await page.get_by_label("Password:").fill(password)
    await page.get_by_role("button", name="Log in").click()
    # The account's menu carries the name; the button that signs out is inside.
    await expect(page.get_by_role("banner").get_by_text(name, exact=True)).to_be_visible()


async def unlabelled(page: Page) -> list[str]:
    found: list[str] = await page.evaluate(_UNLABELLED)
    return found


async def wider_than_window(page: Page) -> list[str]:
    found: list[str] = await page.evaluate(_WIDER) if await overflows(page) else []
    return found


async def overflows(page: Page) -> bool:
    wider: bool = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return wider
