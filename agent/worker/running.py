from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]

# The server has cancelled the chats by then; storing a message and sending an event takes this many seconds at most.
_LAST_WORDS_SECONDS = 3.0

_tasks: set[asyncio.Task[Any]] = set()


@contextmanager
def running() -> Iterator[None]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a chat has to run inside a task")
    _tasks.add(task)
    try:
        yield
    finally:
        _tasks.discard(task)


def with_last_words(lifespan: Application) -> Application:
    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        async def received() -> Any:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and _tasks:
                await asyncio.wait(set(_tasks), timeout=_LAST_WORDS_SECONDS)
            return message

        await lifespan(scope, received, send)

    return waiting
