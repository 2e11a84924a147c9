from __future__ import annotations

import asyncio
from collections.abc import Callable

from config.supervisor.children import Service
from config.supervisor.processes import Program
from integrations.management.commands import sandbox


class Sandbox(Service):
    """The sandbox provider, which most installations never ask. Its socket belongs to the supervisor: whoever connects
    before the process is there, or while it is started again, waits."""

    role = "sandbox"
    is_vital = False

    def __init__(self) -> None:
        self._listening = sandbox.listen()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"

    def program(self) -> Program:
        return Program((), f"{sandbox.__name__}:{sandbox.serve.__name__}", (self._listening.fileno(),))

    def on_first_client(self, begin: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()

        def first() -> None:
            loop.remove_reader(self._listening)
            begin()

        loop.add_reader(self._listening, first)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
