"""The logging settings of a project, contents and retention, go with each of its records."""

from __future__ import annotations

import pytest

from analytics.request_log.record import SpoolEntry
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import body


def entry_of(gateway: Gateway, request_id: str) -> SpoolEntry:
    (entry,) = gateway.service.entries(request_id)
    return entry


@pytest.mark.parametrize("stream", [False, True])
def test_request__of_a_project_that_keeps_no_texts__is_recorded_without_them(routed: Routed, stream: bool) -> None:
    gateway, _ = routed({"log_content": False, "retention_days": 30}, openai=[play.answer()])

    response = gateway.post(body(model="gpt-4o", stream=stream))

    entry = entry_of(gateway, response.headers["x-request-id"])
    assert (entry.request, entry.response) == (b"", b"")
    assert entry.record.retention_days == 30
    assert entry.record.outcome == "success"
    assert entry.record.prompt_tokens


def test_request__that_is_refused__is_recorded_without_its_text_too(routed: Routed) -> None:
    gateway, _ = routed({"log_content": False, "retention_days": 7}, openai=[play.answer()])

    response = gateway.post(body(model="gpt-4o", messages=[]))

    entry = entry_of(gateway, response.headers["x-request-id"])
    assert (entry.request, entry.response) == (b"", b"")
    assert entry.record.retention_days == 7


def test_request__of_a_project_without_settings__keeps_both_for_400_days(gateway: Gateway) -> None:
    response = gateway.post(body(model="gpt-4o"))

    entry = entry_of(gateway, response.headers["x-request-id"])
    assert entry.request
    assert entry.response
    assert entry.record.retention_days == 400
