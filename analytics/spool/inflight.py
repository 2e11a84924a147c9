"""The table of one worker's requests in flight, in memory that outlives the worker.

The file is mapped shared, so a slot is in the page cache once it is written. However the worker dies, the shipper finds
it and records those requests as interrupted (`analytics.spool.interrupted`).
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from analytics.request_log.record import Operation
from analytics.spool import names

logger = logging.getLogger("analytics.spool")

# A slot has the fields state, stream, retention in days, number of the operation, team id, ts, api key id, request id,
# project id, model, user id, session id; longer texts are cut. A table of an earlier version has a retention of 0, no
# team, and as every operation 0, which is the number of `chat`.
_SLOT = struct.Struct("<B?HB3sqQ36s36s96s256s256s")
# The three bytes of a team's id have room for the first 16 million teams of an installation.
_TEAM_BYTES = 3
_MAX_TEAM = 2 ** (8 * _TEAM_BYTES) - 1
_OPERATIONS = tuple(str(operation) for operation in Operation)
_NUMBERS = {operation: number for number, operation in enumerate(_OPERATIONS)}
# The allocation of a rollout for a request lies in a slot of its own: state, whether the unit was a substitute, stage,
# the slot of the request, allocation unit, version, request id, prompt config id, rollout id, variant, the prompt's
# name, whether the response cache knew the question. A shipper of an earlier version takes such a slot for a free one,
# and records the request without it.
_ALLOCATION = struct.Struct("<B?HIQI36s36s36s16s400s?")
_QUESTION_CACHED = _ALLOCATION.size - 1
# Behind each slot lies one with what its layout has no room for: state, tokens of the prompt, price of one of them,
# source. It is of the request in the slot, and a shipper of an earlier version takes it for a free one.
_NOTE = struct.Struct("<BIQ16s")
_TOKENS, _EXPECTED = struct.Struct("<I"), struct.Struct("<IQ")
_EXPECTED_AT = _SLOT.size + struct.calcsize("<B")
_OF_A_KIND = _SLOT.size + _NOTE.size
_PAIR = 2
UNITS_OF_DOLLAR = 10**14
"""The price of a token of the prompt is counted in so many parts of a US dollar."""
UNKNOWN_RATE = 2**64 - 1
_MAX_TOKENS = 2**32 - 1
# The fields of a slot that differ between requests of one kind, with one between them that does not.
_TIME_AND_ID = struct.Struct("<qQ36s")
_TIME_AT = struct.calcsize("<B?HB3s")
_CALLER = struct.Struct("<256s256s")
_CALLER_AT = _SLOT.size - _CALLER.size
_MAX_DAYS = 2**16 - 1
_SLOTS_AT_FIRST = 512
_FREE = 0
_IN_USE = 1
_ALLOCATED = 2
_NOTED = 3
# With this number instead of a file, `mmap` gives memory without a file.
_NO_FILE = -1


class InflightAllocation(NamedTuple):
    prompt_config_id: str
    prompt_name: str
    prompt_version: int
    rollout_id: str
    rollout_stage: int
    variant: str
    alloc_unit: int
    alloc_fallback: bool
    question_cached: bool = False


# A struct takes a fifth of the time that a named tuple takes to be made with keywords, and each request makes one.
class InflightRequest(msgspec.Struct, frozen=True, gc=False):
    """A request without an outcome. `ts` is Unix time in microseconds; `retention_days` 0 is unknown.

    `allocation` is None unless a rollout chose the request's prompt. `tokens` is the estimated size of a prompt that
    was sent to a provider, `rate` the cost of each token.
    """

    request_id: str
    project_id: str
    ts: int
    api_key_id: int
    requested_model: str
    stream: bool
    session_id: str
    user_id: str
    retention_days: int = 0
    allocation: InflightAllocation | None = None
    operation: str = "chat"
    team_id: int = 0
    source: str = "gateway"
    tokens: int = 0
    rate: int = UNKNOWN_RATE


class InflightKind(NamedTuple):
    """What slots share if their requests differ only in time, id, session and user."""

    slot: bytes
    api_key_id: int


def kind_of(request: InflightRequest) -> InflightKind:
    return InflightKind(_SLOT.pack(*_fields(request)) + _note(request), request.api_key_id)


def _note(request: InflightRequest) -> bytes:
    return _NOTE.pack(_NOTED, request.tokens, request.rate, request.source.encode())


def _fields(request: InflightRequest) -> tuple[object, ...]:
    return (
        _FREE,
        request.stream,
        min(request.retention_days, _MAX_DAYS),
        _NUMBERS.get(request.operation, 0),
        (request.team_id if request.team_id <= _MAX_TEAM else 0).to_bytes(_TEAM_BYTES, "little"),
        request.ts,
        request.api_key_id,
        request.request_id.encode(),
        request.project_id.encode(),
        request.requested_model.encode("utf-8", "replace"),
        request.user_id.encode("utf-8", "replace"),
        request.session_id.encode("utf-8", "replace"),
    )


class InflightTable:
    """The slots of one worker, used only by the thread of its event loop.

    If the disk has no room the slots are in memory alone, and requests in flight when the worker dies go unrecorded.

    Call `begin` when a request is admitted, and `end` right after its record was appended to the spool, without an
    `await` in between: if the worker is killed there, the shipper finds the record in its newest segment.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = names.new_path(directory, names.INFLIGHT)
        self._slots = _SLOTS_AT_FIRST
        try:
            self._fd = _make_file(self.path, self._slots * _SLOT.size)
        except OSError as error:
            # The worker serves even if a second death in a row would leave requests unrecorded.
            logger.warning("spool.no_inflight_table directory=%s reason=%s", directory, error.strerror)
            self._fd = _NO_FILE
        self._map = mmap.mmap(self._fd, self._slots * _SLOT.size)
        self._free = list(range(self._slots - _PAIR, -1, -_PAIR))
        # The slot of a rollout's allocation, by the slot of its request.
        self._allocations: dict[int, int] = {}

    def __len__(self) -> int:
        return self._slots // _PAIR - len(self._free) - len(self._allocations)

    def begin(self, request: InflightRequest) -> int:
        slot = self._take()
        start = slot * _SLOT.size
        _SLOT.pack_into(self._map, start, *_fields(request))
        self._map[start + _SLOT.size : start + _SLOT.size + _NOTE.size] = _note(request)
        # The state is written last, so that a slot in use is complete.
        self._map[start] = _IN_USE
        return slot

    def begin_of(self, kind: InflightKind, request_id: str, ts: int, caller: tuple[str, str], tokens: int = 0) -> int:
        """Does what `begin` does in a third of the time. `caller` is the user and the session."""
        slot = self._take()
        start = slot * _SLOT.size
        self._map[start : start + _OF_A_KIND] = kind.slot
        _TIME_AND_ID.pack_into(self._map, start + _TIME_AT, ts, kind.api_key_id, request_id.encode())
        _TOKENS.pack_into(self._map, start + _EXPECTED_AT, tokens)
        user_id, session_id = caller
        if user_id or session_id:
            named = user_id.encode("utf-8", "replace"), session_id.encode("utf-8", "replace")
            _CALLER.pack_into(self._map, start + _CALLER_AT, *named)
        self._map[start] = _IN_USE
        return slot

    def expect(self, slot: int, tokens: int, rate: int) -> None:
        _EXPECTED.pack_into(self._map, slot * _SLOT.size + _EXPECTED_AT, min(tokens, _MAX_TOKENS), rate)

    def allocate(self, slot: int, request_id: str, allocation: InflightAllocation) -> None:
        if slot in self._allocations:
            return
        own = self._take()
        start = own * _SLOT.size
        _ALLOCATION.pack_into(
            self._map,
            start,
            _FREE,
            allocation.alloc_fallback,
            allocation.rollout_stage,
            slot,
            allocation.alloc_unit,
            allocation.prompt_version,
            request_id.encode(),
            allocation.prompt_config_id.encode(),
            allocation.rollout_id.encode(),
            allocation.variant.encode(),
            allocation.prompt_name.encode("utf-8", "replace"),
            allocation.question_cached,
        )
        self._map[start] = _ALLOCATED
        self._allocations[slot] = own

    def note_question_cached(self, slot: int) -> None:
        self._map[self._allocations[slot] * _SLOT.size + _QUESTION_CACHED] = True

    def end(self, slot: int) -> None:
        self._map[slot * _SLOT.size] = _FREE
        if slot in self._allocations:
            own = self._allocations.pop(slot)
            self._map[own * _SLOT.size] = _FREE
            self._free.append(own)
        self._free.append(slot)

    def close(self) -> None:
        """Keeps the file while requests are in flight, so that the shipper records them."""
        if not len(self):
            self.path.unlink(missing_ok=True)
        self._map.close()
        if self._fd != _NO_FILE:
            os.close(self._fd)

    def _take(self) -> int:
        if not self._free:
            self._grow()
        return self._free.pop()

    def _grow(self) -> None:
        size = 2 * self._slots * _SLOT.size
        self._map = self._larger(size)
        self._free.extend(range(2 * self._slots - _PAIR, self._slots - _PAIR, -_PAIR))
        self._slots *= 2

    def _larger(self, size: int) -> mmap.mmap:
        if self._fd != _NO_FILE:
            try:
                _reserve(self._fd, size)
            except OSError as error:
                logger.warning("spool.no_inflight_table directory=%s reason=%s", self.path.parent, error.strerror)
                self.path.unlink(missing_ok=True)
                os.close(self._fd)
                self._fd = _NO_FILE
            else:
                self._map.close()
                return mmap.mmap(self._fd, size)
        larger = mmap.mmap(_NO_FILE, size)
        larger[: len(self._map)] = self._map[:]
        self._map.close()
        return larger


def _make_file(path: Path, size: int) -> int:
    hidden = path.with_suffix(".new-inflight")
    fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _reserve(fd, size)
        fcntl.flock(fd, fcntl.LOCK_EX)
        hidden.rename(path)
    except OSError:
        os.close(fd)
        hidden.unlink(missing_ok=True)
        raise
    return fd


def _reserve(fd: int, size: int) -> None:
    if sys.platform == "linux":
        # The file is not made by ftruncate: writing to a hole of a file on a full disk would be a SIGBUS.
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def read_table(content: bytes) -> Iterator[InflightRequest]:
    slots = memoryview(content)[: len(content) - len(content) % _SLOT.size]
    allocations = dict(_allocations(slots))
    for slot, (state, stream, days, number, team, ts, key, *texts) in enumerate(_SLOT.iter_unpack(slots)):
        if state == _IN_USE:
            request_id, project_id, model, user_id, session_id = map(_text, texts)
            allocation = allocations.get((slot, request_id))
            # A table of a later version may have an operation that this one does not know.
            operation = _OPERATIONS[number] if number < len(_OPERATIONS) else _OPERATIONS[0]
            noted = _noted(slots, slot + 1)
            yield InflightRequest(
                request_id,
                project_id,
                ts,
                key,
                model,
                stream,
                session_id,
                user_id,
                days,
                allocation,
                operation,
                int.from_bytes(team, "little"),
                *noted,
            )


def _noted(slots: memoryview, slot: int) -> tuple[str, int, int] | tuple[()]:
    """Returns source, tokens and rate; () for a table of an earlier version."""
    start = slot * _SLOT.size
    if start >= len(slots) or slots[start] != _NOTED:
        return ()
    _, tokens, rate, source = _NOTE.unpack_from(slots, start)
    return _text(source), tokens, rate


def _allocations(slots: memoryview) -> Iterator[tuple[tuple[int, str], InflightAllocation]]:
    for start in range(0, len(slots), _SLOT.size):
        if slots[start] == _ALLOCATED:
            _, fallback, stage, slot, unit, version, *texts, cached = _ALLOCATION.unpack_from(slots, start)
            request_id, config_id, rollout_id, variant, name = map(_text, texts)
            yield (
                (slot, request_id),
                InflightAllocation(config_id, name, version, rollout_id, stage, variant, unit, fallback, cached),
            )


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("utf-8", "ignore")
