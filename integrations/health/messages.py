from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from integrations.health.circuit import CircuitRecord, Outcomes
from integrations.health.targets import Target
from integrations.health.window import Counts

logger = logging.getLogger("integrations.health")


class SliceCounts(msgspec.Struct, frozen=True, array_like=True):
    target: Target
    number: int
    counts: Counts


class CircuitChange(msgspec.Struct, frozen=True, array_like=True):
    target: Target
    record: CircuitRecord


class OutcomesSeen(msgspec.Struct, frozen=True, array_like=True):
    target: Target
    seen: Outcomes


class HealthMessage(msgspec.Struct, frozen=True, array_like=True):
    sender: str
    slices: list[SliceCounts] = []
    outcomes: list[OutcomesSeen] = []
    circuits: list[CircuitChange] = []


_encoder = msgspec.msgpack.Encoder()
_messages = msgspec.msgpack.Decoder(HealthMessage)
_records = msgspec.msgpack.Decoder(CircuitRecord)


def encode_message(message: HealthMessage) -> bytes:
    return _encoder.encode(message)


def decode_message(data: bytes) -> HealthMessage:
    return _messages.decode(data)


def encode_record(record: CircuitRecord) -> bytes:
    return _encoder.encode(record)


def decode_record(data: bytes) -> CircuitRecord | None:
    """Returns None for a record of another release: the circuit then counts as one that never opened."""
    try:
        return _records.decode(data)
    except msgspec.DecodeError as error:
        logger.warning("circuit.unreadable error=%s", error)
        return None


def decode_counts(found: Mapping[bytes, bytes]) -> Counts:
    return {int(field): int(count) for field, count in found.items()}
