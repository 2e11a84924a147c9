from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from analytics.request_log.record import RequestRecord
from core.keys.services import KeyRecord
from gateway.pipeline.answer_headers import served_by
from gateway.pipeline.context import Attempt, RequestState
from gateway.pipeline.record import record_of
from gateway.protocol.headers import PROMPT_VERSION, VARIANT, WARNING, RequestHeaders
from gateway.protocol.wire import decode_request
from gateway.snapshot.project import ProjectSnapshot
from gateway.surfaces.base import Surface
from integrations.providers.usage import Usage

_MESSAGE: Final = {"role": "user", "content": "Hello"}
# The headers that come behind those of the limits.
_LAST: Final = frozenset({PROMPT_VERSION, VARIANT, WARNING})


class Shown(NamedTuple):
    record: RequestRecord
    served: bytes
    last: bytes


def sample_body(model: str) -> bytes:
    return msgspec.json.encode({"model": model, "messages": [_MESSAGE]})


def sample_state(snapshot: ProjectSnapshot, key: KeyRecord, surface: Surface, body: bytes) -> RequestState:
    return RequestState("", 0, 0.0, snapshot, key, RequestHeaders(), body, decode_request(body), surface=surface)


def shown_of(state: RequestState, attempt: Attempt, model: str, *, is_native: bool) -> Shown | None:
    state.serve_from(attempt)
    state.answer.is_native = is_native
    state.answer.usage, state.answer.first_output, state.routing.served_seconds = Usage(1, 1), 1.0, 1.0
    headers = served_by(state)
    if any(b"\n" in value or b"\r" in value for _, value in headers):
        return None
    last = [header for header in headers if header[0] in _LAST]
    record = replace(record_of(state), requested_model=model)
    return Shown(record, _lines_of(header for header in headers if header not in last), _lines_of(last))


def _lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
