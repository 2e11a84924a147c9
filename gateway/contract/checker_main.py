"""Runs slow schema checks in a process of its own, which its parent kills after a time limit.

Started as `python -m gateway.contract.checker_main FD`. A request is [schema, texts] as MessagePack. The response is
the index of the first text that violates the schema, or nil; after an index, the reason follows.
"""

from __future__ import annotations

import resource
import signal
import sys
from multiprocessing.connection import Connection

import msgspec

from gateway.contract.checking import first_violation, reason

# A schema whose references are expanded can fill any memory.
_MAX_BYTES = 1 << 30
# The alarm ends the process when its parent was killed before it could end a check.
_MAX_SECONDS = 10

_decode = msgspec.msgpack.Decoder(tuple[bytes, list[str]]).decode
_encode = msgspec.msgpack.Encoder().encode


def serve(connection: Connection) -> None:
    while True:
        try:
            schema, contents = _decode(connection.recv_bytes())
        except EOFError:
            return  # The worker has exited.
        signal.alarm(_MAX_SECONDS)
        index = first_violation(schema, contents)
        connection.send_bytes(_encode(index))
        if index is not None:
            connection.send_bytes(_encode(reason(schema, contents[index])))
        signal.alarm(0)


if __name__ == "__main__":
    # SIGINT is meant for the worker, which closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    serve(Connection(int(sys.argv[1])))
