"""Requests of more than some KB are read in threads, and none waits behind a much larger one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from uuid import uuid4

import pytest

from core.keys.services import KeyRecord
from gateway.errors import GuardrailError
from gateway.pipeline import guard_input as stage
from gateway.pipeline.context import RequestContext, RequestState
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import LazyFields, decode_request
from gateway.snapshot.project import ProjectSnapshot

PROJECT = uuid4()
KEY = KeyRecord(id=1, project_id=PROJECT, key_hash="", scopes=frozenset({"gateway"}), expires_at=None)
SETTINGS = ProjectSettings(
    guardrails=GuardrailSettings(trust_mode=TrustMode.ENFORCE, blocked_input_topics=("moon landing",))
)


async def guarded(words: int) -> None:
    content = "word " * words + "moon landing"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    snapshot = ProjectSnapshot(PROJECT, str(PROJECT), {}, {}, {}, SETTINGS, 1)
    headers, request = RequestHeaders(), decode_request(body)
    state = RequestState("r-1", 0, time.perf_counter(), snapshot, KEY, headers, body, request)
    await stage.guard_input(RequestContext(snapshot, headers, body, request, LazyFields(body)), state)


async def test_large_request__that_takes_long__holds_up_only_others_of_its_size() -> None:
    released = threading.Event()
    stage._threads_of_large.submit(released.wait, 30)
    try:
        for words in (10, 5_000):
            with pytest.raises(GuardrailError):
                await guarded(words)
        large = asyncio.create_task(guarded(100_000))
        with pytest.raises(GuardrailError):
            await guarded(5_000)
        assert not large.done()
    finally:
        released.set()
    with pytest.raises(GuardrailError):
        await large
