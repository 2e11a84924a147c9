"""The fields from which a record becomes spans: the client's trace, the prompt's name, and the time of each provider's
call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.headers import read_headers, trace_parent
from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.managed import make_prompt
from tests.gateway.wire import body
from tests.tables.cases import tabled

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("header", [f"00-{TRACE}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-00 ", f"cc-{TRACE}-{SPAN}-01-later"])
def test_traceparent__valid__trace_and_parent(header: str) -> None:
    assert trace_parent(header) == (TRACE, SPAN)


@tabled
def test_traceparent__not_valid__none(header: str) -> None:
    assert trace_parent(header) == ("", "")


@given(st.binary(max_size=100))
def test_traceparent__any_bytes__never_fails(value: bytes) -> None:
    trace_id, span_id = trace_parent(read_headers([(b"traceparent", value)]).traceparent)

    assert (len(trace_id), len(span_id)) in ((0, 0), (32, 16))


def test_record__of_a_traced_request__has_what_spans_need(scripted: Scripted) -> None:
    gateway, _ = scripted(play.status(503), play.answer(delay=0.05))
    make_prompt(gateway, "Be kind.", name="support")

    response = gateway.post(body(), headers={"traceparent": f"00-{TRACE}-{SPAN}-01", "x-svc-prompt-config": "support"})

    assert response.status_code == 200, response.text
    (entry,) = gateway.service.entries(response.headers["x-request-id"])
    record = entry.record
    assert (record.trace_id, record.parent_span_id, record.prompt_name) == (TRACE, SPAN, "support")
    first, second = record.attempts
    assert 0 < first.offset_us < second.offset_us
    assert first.offset_us + first.latency_ms * 1000 <= second.offset_us
    assert second.offset_us + 50_000 <= (record.latency_ms + 1) * 1000


def test_record__without_a_trace__none_made_up(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())

    response = gateway.post(body(), headers={"traceparent": "00-nonsense"})

    (entry,) = gateway.service.entries(response.headers["x-request-id"])
    assert (entry.record.trace_id, entry.record.parent_span_id, entry.record.prompt_name) == ("", "", "")
