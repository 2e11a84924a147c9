"""A browser for tests of pages: headless Chromium, driven through Playwright's asynchronous API.

A test is a coroutine with the fixture `page`; it needs no marker:

    async def test_button__pressed__says_so(page: Page, live_service: LiveService) -> None:
        await sign_in(page, live_service.base_url, name, password)
        await page.goto(f"{live_service.base_url}/admin/…")
        await page.get_by_role("button", name="Run").click()
        await expect(page.get_by_role("status")).to_have_text("Done")

`page` is a new page in a context of its own: no cookies, no storage. All pages of that context are watched, and a test
fails when one of them logged an error, did not catch one, broke its own content security policy, or sent a request to
another host than this machine. A test that causes a problem on purpose announces it with
`problems.expect("status of 422")`; an expected problem that does not occur fails the test too.

Find elements as people do, by role and label: a test then fails for a field without a label, and `unlabelled(page)`
lists the others. Locators and `expect` wait up to `TIMEOUT_SECONDS`; never wait for a time.

Calls that block, such as `requests` in a helper, are fine between two awaits: the browser is another process. Work
that has to happen while a page waits belongs into `asyncio.to_thread`.

Nothing has to be installed by hand: the first use takes Chromium from the npm registry (`chromium.py`) into the virtual
environment. `CHROMIUM=/usr/bin/chromium` has the tests use that program instead.
"""
