"""One web worker: `python -m config.supervisor.web_worker FD` serves `config.asgi` on an inherited socket.

uvicorn with uvloop and httptools is the fastest of the ASGI servers measured (docs/performance.md).
"""

from __future__ import annotations

import gc
import os
import socket
import sys

import uvicorn
from typing_extensions import override

from config.supervisor.web import BACKLOG

# The snapshot and the code never die: frozen out of the collector's sight, they cost no pauses. What a request makes is
# freed by reference counting, so the collector may come rarely.
_COLLECT_AFTER = (50_000, 20, 50)


class _Server(uvicorn.Server):
    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)


def main(descriptor: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    from django.conf import settings  # after the variable that names them is set

    config = uvicorn.Config(
        "config.asgi:application",
        loop="uvloop",
        http="httptools",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.DRAIN_SECONDS,
    )
    _Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
