"""Tests the translations of every table, and that the vendors' SDKs read the answers."""

from __future__ import annotations

import json

import pytest
from openai.types.responses import Response

from gateway.protocol.wire import decode_request
from tests.gateway.surfaces.messages.clients import read_stream, read_whole
from tests.gateway.surfaces.responses.chunks import read_by_the_sdk
from tests.gateway.surfaces.translations.outcomes import TABLES, body_of, outcome_of, streamed, surface_of
from tests.tables.translated import Case

CASES = TABLES.cases()
READ = [case for case in CASES if "chat" in case.expected]
WHOLE = [case for case in CASES if "answer" in case.expected and case.given["surface"] != "count_tokens"]
STREAMS = [case for case in CASES if "events" in case.expected]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_translation__of_a_table__as_it_says(case: Case) -> None:
    assert outcome_of(case.given) == case.expected


@pytest.mark.parametrize("case", READ, ids=str)
def test_request__of_a_table__is_one_that_the_pipeline_takes(case: Case) -> None:
    decode_request(json.dumps(case.expected["chat"]).encode())


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_answer__of_a_table__is_read_by_the_vendors_sdk(case: Case) -> None:
    answer = case.expected["answer"]
    if case.given["surface"] == "messages":
        assert read_whole(json.dumps(answer).encode()).to_dict(mode="json") == answer
    else:
        Response.model_validate(answer, strict=True)


@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_stream__of_a_table__is_read_by_the_vendors_sdk_and_the_same_in_any_pieces(case: Case) -> None:
    request = surface_of(case.given).read(body_of(case.given))
    frames = streamed(case.given, request, at=[])
    assert all(streamed(case.given, request, at=at) == frames for at in ([1], range(1, len(case.given["chunks"]))))
    if case.given["surface"] == "messages":
        read_stream(frames)
    else:
        events = case.expected["events"]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        if events[-1]["type"] == "response.completed":
            read_by_the_sdk(events)
        assert case.expected.get("answer") in (None, events[-1]["response"])
