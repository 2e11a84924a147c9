from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection

from core.errors import ApplicationError


def at_once(callers: int, call: Callable[[int], Any]) -> list[Any]:
    together = Barrier(callers)

    def run(number: int) -> Any:
        together.wait()
        try:
            return call(number)
        except ApplicationError as error:
            return error.code
        finally:
            connection.close()

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(run, range(callers)))
