"""Names looked up in threads of their own."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

_THREADS = 4


class OwnLookup:
    """A Lookup. Clients choose these names, and a name server that never answers holds a thread for long: in the
    loop's own few threads it would hold up every new connection to a provider."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="media-names")

    async def __call__(self, host: str, port: int) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, _addresses, host, port)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # an empty or overlong label
        raise OSError(f"{host} is not a name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
