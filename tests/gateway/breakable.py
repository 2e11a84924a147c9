"""The gateway's application in a worker whose background tasks a test can break: GET /tasks names them, and POST
/tasks/break/<class of the error> makes what each of them waits for fail with that error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg

from config.asgi import application as gateway

_KEPT = "_keep_running"
ERRORS: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (
        RuntimeError,
        OSError,
        MemoryError,
        AssertionError,
        asyncio.CancelledError,
        # What the driver raises when it closes a cursor is no error of Django's.
        psycopg.errors.InvalidCursorName,
    )
}


class Broken(BaseException):
    """Stands for what an extension module may raise beside the exceptions of Python."""


ERRORS["Broken"] = Broken


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    path = scope.get("path", "")
    if not path.startswith("/tasks"):
        await gateway(scope, receive, send)
        return
    kept = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == _KEPT]
    if path.startswith("/tasks/break/"):
        for task in kept:
            await _break(task, ERRORS[path.rpartition("/")[2]])
    body = json.dumps(sorted(task.get_name() for task in kept)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def _break(task: asyncio.Task[Any], error: type[BaseException]) -> None:
    while (waited := _waited_for(task)) is None or waited.done():  # noqa: ASYNC110 - no event says when a task waits
        await asyncio.sleep(0)
    if error is asyncio.CancelledError:
        waited.cancel()
    else:
        waited.set_exception(error("broken by a test"))


def _waited_for(task: asyncio.Task[Any]) -> asyncio.Future[Any] | None:
    """Returns the future for which a task, or the innermost task that it waits for, is suspended."""
    waited: asyncio.Future[Any] | None = task._fut_waiter  # type: ignore[attr-defined]
    return _waited_for(waited) if isinstance(waited, asyncio.Task) else waited
