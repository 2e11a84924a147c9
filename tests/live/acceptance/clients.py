from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.live.acceptance.worlds import World

_PATH = "/api/gateway/v1/chat/completions"
_END = "data: [DONE]\n\n"


@dataclass(slots=True)
class ClientRequest:
    """One request: when it was sent (Unix time), the arm that its answer named, and its outcome.

    `outcome` is the status, `left` if the client did not wait for the end, `broken` for a stream that ended early, and
    empty while the request is open. `cached`: the answer came from the cache.
    """

    sent: float
    variant: str = ""
    outcome: str = ""
    cached: bool = False


@dataclass
class Clients:
    world: World
    base_url: str
    api_key: str
    seed: int = 0
    seen: list[ClientRequest] = field(default_factory=list)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed} {self.world.name}")

    async def ask_often(self, session: aiohttp.ClientSession, count: int, at_once: int) -> None:
        room = asyncio.Semaphore(at_once)

        async def one() -> None:
            async with room:
                await self._ask(session)

        await asyncio.gather(*(one() for _ in range(count)))

    async def send_steadily(self, session: aiohttp.ClientSession, per_second: float) -> None:
        """Sends at a mean rate, whether or not others have ended, until cancelled; then all clients leave."""
        try:
            while True:
                self.begin(session)
                await asyncio.sleep(self._chance.expovariate(per_second))
        finally:
            await self.leave()

    def begin(self, session: aiohttp.ClientSession) -> None:
        task = asyncio.create_task(self._ask(session))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def leave(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        seen = ClientRequest(time.time())
        self.seen.append(seen)
        number = len(self.seen)
        body, session_id = self.world.request(number, self._chance), self.world.session(number)
        try:
            async with asyncio.timeout(self.world.client_timeout):
                await self._answered(session, body, session_id, seen)
        except TimeoutError:
            seen.outcome = "left"
        except aiohttp.ClientError:
            seen.outcome = "broken"

    async def _answered(
        self, session: aiohttp.ClientSession, body: dict[str, object], session_id: str, seen: ClientRequest
    ) -> None:
        headers = {"authorization": f"Bearer {self.api_key}"}
        if session_id:
            headers["x-svc-session-id"] = session_id
        async with session.post(f"{self.base_url}{_PATH}", json=body, headers=headers) as answer:
            seen.variant = answer.headers.get("x-svc-variant", "")
            seen.cached = answer.headers.get("x-svc-cache") == "hit"
            text = await answer.text()
        broken = answer.status == 200 and body["stream"] and ('"error":' in text or not text.endswith(_END))
        seen.outcome = "broken" if broken else str(answer.status)


def new_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))


def outcomes(seen: Sequence[ClientRequest]) -> str:
    counted = Counter(one.outcome or "open" for one in seen if not one.cached)
    counted.update("cached" for one in seen if one.cached)
    return ", ".join(f"{count} x {outcome}" for outcome, count in counted.most_common()) or "-"
