"""Runs the schema checks that may take long in a process of its own, which the parent kills after a time limit.

The process is started as `python -m gateway.contract.checker_main FD`.
It is asked [schema, texts] as MessagePack and answers twice: the index of the first text that is not of the schema or
nil, and, unless that was nil, the reason.
"""

from __future__ import annotations

import resource
import signal
import sys
from multiprocessing.connection import Connection

import msgspec

from gateway.contract.checking import first_violation, reason

# References written out can fill any memory.
_MAX_BYTES = 1 << 30
# For a parent that was killed before it could end a check.
_MAX_SECONDS = 10

_decode = msgspec.msgpack.Decoder(tuple[bytes, list[str]]).decode
_encode = msgspec.msgpack.Encoder().encode


def serve(connection: Connection) -> None:
    while True:
        try:
            schema, contents = _decode(connection.recv_bytes())
        except EOFError:
            return  # the worker is gone
        signal.alarm(_MAX_SECONDS)
        index = first_violation(schema, contents)
        connection.send_bytes(_encode(index))
        if index is not None:
            connection.send_bytes(_encode(reason(schema, contents[index])))
        signal.alarm(0)


if __name__ == "__main__":
    # Ctrl-C is for the worker, which closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    serve(Connection(int(sys.argv[1])))
