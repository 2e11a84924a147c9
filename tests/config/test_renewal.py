from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from config import env
from config.supervisor.renewal import Renewal
from tests.waiting import TIMEOUT_SECONDS, eventually


def test_end__command_that_gives_a_secret_hangs__service_stops_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released, ended = threading.Event(), threading.Event(), threading.Event()

    def hang() -> dict[str, str]:
        begun.set()
        released.wait(TIMEOUT_SECONDS)
        ended.set()
        return {}

    monkeypatch.setattr(env, "read_again", hang)

    async def stop_meanwhile() -> None:
        processes: Any = Mock()
        replacement: Any = Mock()
        renewal = Renewal(processes, replacement)
        renewal.begin()
        await eventually(begun.is_set)
        await renewal.end()

    # It ends as `serve` does, which waits for the threads of the loop's executor.
    asyncio.run(stop_meanwhile())

    assert not ended.is_set()
    released.set()
