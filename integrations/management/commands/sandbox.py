from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

from aiohttp import web
from django.core.management.base import BaseCommand, CommandError, CommandParser

from integrations.sandbox.server import Sandbox


class Command(BaseCommand):
    help = "Serve the sandbox provider: OpenAI's dialect, deterministic answers."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
        parser.add_argument("--port-file", type=Path, help="where to write the port once it is served")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            listening = listen(options["host"], options["port"])
        except OSError as error:
            raise CommandError(f"The sandbox cannot listen: {error.strerror or error}") from error
        asyncio.run(_serve(listening, options["port_file"]))


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    return socket.create_server((host, port), backlog=1024)


def serve(descriptor: int) -> None:
    """Serves on an inherited socket, where clients may wait already."""
    asyncio.run(_serve(socket.socket(fileno=descriptor), None))


async def _serve(listening: socket.socket, port_file: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(Sandbox().application(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        if port_file is not None:
            _announce(port_file, int(listening.getsockname()[1]))
        await stop.wait()
    finally:
        await runner.cleanup()


def _announce(port_file: Path, port: int) -> None:
    """Renames the file into place, so that readers see either the whole number or no file."""
    draft = port_file.with_name(f".{port_file.name}.{os.getpid()}")
    draft.write_text(f"{port}\n", encoding="utf-8")
    draft.replace(port_file)
