"""Requests of running rollouts that are open without a first output: a target that never answers leaves no row in the
request log for minutes, and must not look unused.

The web workers of all hosts write (`gateway.runtime.open_requests`), the evaluation reads.

For each rollout, Redis holds a set of the workers that have a list, and one key per worker with its list. Both expire
by themselves, so a dead worker's list does not stay. The braces keep a rollout's keys on one node of a cluster; the
number is the format's version, as releases run side by side during an upgrade.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import redis
from django.conf import settings

from core.redis.clients import shared_client
from core.redis.failures import REDIS_ERRORS, reason

logger = logging.getLogger("rollouts")

INTERVAL_SECONDS = 5.0
"""The seconds between two updates of a worker's list of open requests."""
OPEN_SECONDS = 5.0
"""The age in seconds from which an open request is listed. Most requests are answered before it."""
EXPIRY_SECONDS = 3 * INTERVAL_SECONDS
"""The seconds for which a worker's list is kept without an update."""
MAX_OPEN_REQUESTS = 1000
"""The largest number of open requests of one rollout, the oldest first, whatever their arm."""

_FORMAT = 1
# The set of workers has to outlive their lists.
WORKERS_EXPIRY_SECONDS = 4 * EXPIRY_SECONDS
_ANSWER_SECONDS = 1.0
# A Redis that hangs delays the evaluation once in so many seconds, not once for each rollout.
_REST_SECONDS = 30.0


class OpenRequest(msgspec.Struct, frozen=True, array_like=True):
    """One allocated request without a first output. `arrived_us` is Unix time in microseconds by its worker's clock, as
    its row's `ts` will be; the other fields are its row's (`rollout_stage`, `variant`, `alloc_unit`).

    Leaves out forced requests and those allocated by a substitute of their unit: they are in no arm.
    """

    request_id: str
    rollout_id: str
    stage: int
    variant: str
    alloc_unit: int
    arrived_us: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[OpenRequest])


def key(rollout_id: str, worker: str) -> str:
    return f"{{rollout:{rollout_id}}}:open:{_FORMAT}:{worker}"


def workers_key(rollout_id: str) -> str:
    return f"{{rollout:{rollout_id}}}:open:{_FORMAT}"


def encode(requests: Iterable[OpenRequest]) -> bytes:
    return _encoder.encode(_oldest(requests))


def decode(encoded: bytes) -> list[OpenRequest]:
    return _decoder.decode(encoded)


class OpenRequestReader:
    """While Redis is unreachable no request counts as open; the log says so once."""

    def __init__(self, redis_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = redis_url
        self._clock = clock
        self._rests_until = 0.0
        self._away = False

    def read(self, rollout_id: str) -> list[OpenRequest]:
        if self._away and self._clock() < self._rests_until:
            return []
        try:
            found = self._ask(rollout_id)
        except REDIS_ERRORS as error:
            self._note_away(error)
            return []
        if self._away:
            self._away = False
            logger.warning("redis.back")
        return _oldest(request for encoded in found for request in _readable(encoded))

    def _ask(self, rollout_id: str) -> Sequence[bytes]:
        client: Any = shared_client(self._url, seconds=_ANSWER_SECONDS)
        names = workers_key(rollout_id)
        workers = sorted(client.smembers(names))
        if not workers:
            return []
        lists = client.mget([key(rollout_id, worker.decode()) for worker in workers])
        gone = [worker for worker, list_ in zip(workers, lists, strict=True) if list_ is None]
        if gone:
            # A removed worker that has a list again adds itself. A Redis that refuses writes still answers reads.
            with suppress(redis.ResponseError):
                client.srem(names, *gone)
        return [list_ for list_ in lists if list_ is not None]

    def _note_away(self, error: Exception) -> None:
        self._rests_until = self._clock() + _REST_SECONDS
        if not self._away:
            self._away = True
            logger.warning("redis.away error=%s", reason(error))


_readers: dict[str, OpenRequestReader] = {}


def open_requests(rollout_id: UUID | str) -> list[OpenRequest]:
    """Returns a rollout's oldest MAX_OPEN_REQUESTS requests without a first output for OPEN_SECONDS or longer, by
    arrival. Never raises while Redis is unreachable: it then returns none, and they count when they end.

    The workers' lists lag. A request is listed at most INTERVAL_SECONDS after it became old enough, and may still be
    listed with its first output or after its end: for INTERVAL_SECONDS if its worker lives, for EXPIRY_SECONDS if it
    died or lost Redis. So its row may be in the request log already, or arrive meanwhile: compare the ids.
    """
    url: str = settings.REDIS_URL
    reader = _readers.setdefault(url, OpenRequestReader(url))
    return reader.read(str(rollout_id))


def _readable(encoded: bytes) -> list[OpenRequest]:
    try:
        return decode(encoded)
    except msgspec.DecodeError as error:
        logger.warning("open_requests.unreadable error=%s", error)
        return []


def _oldest(requests: Iterable[OpenRequest]) -> list[OpenRequest]:
    return sorted(requests, key=lambda request: (request.arrived_us, request.request_id))[:MAX_OPEN_REQUESTS]
