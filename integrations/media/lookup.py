"""Resolves host names in separate threads."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

_THREADS = 4


class OwnLookup:
    """Resolves the names that clients choose, in threads of its own. A name server that never answers blocks a thread
    for long, and in the event loop's few default threads it would delay every new connection to a provider."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="media-names")

    async def __call__(self, host: str, port: int) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, _addresses, host, port)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # Python raises UnicodeError for an empty or overlong label of a host name.
        raise OSError(f"{host} is not a name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
