from __future__ import annotations

from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, WebError

_HERE = {"127.0.0.1", "localhost", "[::1]"}
_LOADED_FROM_ELSEWHERE = ("http", "https", "ws", "wss")


class Problems:
    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._found: list[str] = []
        self._expected: list[str] = []
        context.on("console", self._note_message)
        context.on("weberror", self._note_error)
        context.on("request", self._note_request)

    def expect(self, *parts: str) -> None:
        self._expected.extend(parts)

    async def settle(self) -> None:
        """Returns when the open pages have reported all earlier problems."""
        for page in self._context.pages:
            # A page's answers and events arrive in the order in which they were sent.
            await page.evaluate("0")

    def check(self) -> None:
        """Raises AssertionError for an unexpected problem, and for an expected one that did not occur."""
        unexpected = [problem for problem in self._found if not any(part in problem for part in self._expected)]
        assert not unexpected, "the page had problems:\n" + "\n".join(unexpected)
        missing = [part for part in self._expected if not any(part in problem for problem in self._found)]
        assert not missing, f"the page did not have the problems {missing}"

    def _note_message(self, message: ConsoleMessage) -> None:
        # The browser also logs a breach of the content security policy as an error.
        if message.type == "error":
            self._found.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _note_error(self, error: WebError) -> None:
        self._found.append(f"uncaught: {error.error}")

    def _note_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in _LOADED_FROM_ELSEWHERE and address.hostname not in _HERE:
            self._found.append(f"foreign host: {request.url}")
