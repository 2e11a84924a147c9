"""Malformed bodies: broken JSON, wrong encodings, too large, too slow. None of them causes a 500."""

from __future__ import annotations

import gzip
import json
import random
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, assert_error, assert_request_id, body
from tests.night import examples
from tests.waiting import TIMEOUT_SECONDS

VALID = json.dumps(body()).encode()

NOT_JSON: dict[str, bytes] = {
    "empty": b"",
    "white space": b" \n ",
    "open object": b"{",
    "cut short": VALID[:-5],
    "cut inside a string": VALID[:20],
    "trailing comma": b'{"model":"openai/gpt-4o","messages":[{"role":"user","content":"hi"}],}',
    "single quotes": b"{'model':'openai/gpt-4o'}",
    "trailing text": VALID + b"x",
    "two objects": VALID + VALID,
    "comment": b"/* c */" + VALID,
    "NaN": VALID[:-1] + b',"temperature":NaN}',
    "Infinity": VALID[:-1] + b',"temperature":Infinity}',
    "-Infinity": VALID[:-1] + b',"x":-Infinity}',
    "raw newline in a string": VALID.replace(b"hi", b"h\ni"),
    "raw NUL in a string": VALID.replace(b"hi", b"h\x00i"),
    "unknown escape": VALID.replace(b"hi", b"\\x41"),
    "leading zero": VALID[:-1] + b',"n":01}',
    "UTF-16 LE": VALID.decode().encode("utf-16-le"),
    "UTF-16 BE": VALID.decode().encode("utf-16-be"),
    "UTF-16 with mark": VALID.decode().encode("utf-16"),
    "UTF-32": VALID.decode().encode("utf-32"),
    "invalid UTF-8 in content": VALID.replace(b"hi", b"\xff\xfe"),
    "cut UTF-8 in content": VALID.replace(b"hi", b"\xe2\x82"),
    "overlong UTF-8 in content": VALID.replace(b"hi", b"\xc0\xaf"),
    "surrogate bytes in content": VALID.replace(b"hi", b"\xed\xa0\x80"),
    "Latin-1 in an unknown field": VALID[:-1] + b',"note":"\xe9"}',
    "invalid UTF-8 in a key": VALID[:-1] + b',"\xff":1}',
    "array": b"[]",
    "array of requests": b"[" + VALID + b"]",
    "string": b'"model"',
    "number": b"5",
    "null": b"null",
    "true": b"true",
    "form": b"model=openai/gpt-4o&messages=hi",
    "100,000 open arrays": b"[" * 100_000,
    "100,000 open objects": b'{"a":' * 100_000,
    "nested unknown field": VALID[:-1] + b',"deep":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "nested tools": VALID[:-1] + b',"tools":[' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"]}",
}


@pytest.mark.parametrize("raw", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_body__not_a_json_object__is_refused_as_such(gateway: Gateway, raw: bytes) -> None:
    response = gateway.post(raw)

    assert_error(response, 400, "invalid_json", type="invalid_request_error")


def test_body__with_byte_order_mark__is_refused_or_served_but_never_fails(gateway: Gateway) -> None:
    response = gateway.post(b"\xef\xbb\xbf" + VALID)

    assert response.status_code in (200, 400)
    assert_request_id(response)


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1e-400", b"9" * 400, b"0." + b"1" * 400])
def test_number__beyond_any_range__never_fails(gateway: Gateway, number: bytes) -> None:
    for field in (b"temperature", b"max_tokens", b"seed", b"unknown"):
        response = gateway.post(VALID[:-1] + b',"' + field + b'":' + number + b"}")

        assert response.status_code in (200, 400), (field, response.text)
        assert_request_id(response)


def test_text__lone_surrogate_escape__never_fails(gateway: Gateway) -> None:
    for text in (b"\\ud800", b"\\udc00\\ud800", b"\\ud83d\\ude00"):
        response = gateway.post(VALID.replace(b"hi", text))

        assert response.status_code in (200, 400), response.text
        assert_request_id(response)


def test_duplicate_keys__one_meaning__for_the_check_and_the_provider(gateway: Gateway) -> None:
    raw = (
        b'{"model":"openai/gpt-first","n":1,"messages":[{"role":"user","content":"a"}],"model":"openai/gpt-last","n":2}'
    )

    response = gateway.post(raw)

    assert response.status_code == 200
    sent = gateway.upstream.received[-1].body
    pairs = json.loads(sent, object_pairs_hook=lambda pairs: pairs)
    assert {value for name, value in pairs if name == "model"} == {"gpt-last"}
    assert [value for name, value in pairs if name == "n"][-1] == 2


def test_duplicate_keys__an_earlier_value_out_of_range__cannot_hide(gateway: Gateway) -> None:
    for pair in (b'"n":99,"n":1', b'"n":1,"n":99'):
        response = gateway.post(VALID[:-1] + b"," + pair + b"}")

        assert_error(response, 400, "invalid_value", naming="n")


def test_body__10_mb_in_many_messages__is_served(gateway: Gateway) -> None:
    messages = [{"role": "user", "content": "x" * 1_000_000}] * 10

    response = gateway.post(body(messages=messages))

    assert response.status_code == 200, response.text[:300]
    assert len(gateway.upstream.received[-1].body) > 10_000_000


def test_body__10_mb_of_garbage__is_refused(gateway: Gateway) -> None:
    response = gateway.post(random.Random(5).randbytes(10_000_000))

    assert_error(response, 400, "invalid_json")


def test_body__10_mb_in_one_message__is_refused_by_name(gateway: Gateway) -> None:
    response = gateway.post(body(messages=[{"role": "user", "content": "x" * 10_000_000}]))

    assert_error(response, 400, "message_too_large", naming="messages[0]")


def test_body__above_32_mb__is_refused_whether_announced_or_not(gateway: Gateway) -> None:
    pieces = [b"x" * 1_000_000] * 34

    for content in (b"".join(pieces), iter(pieces)):
        response = gateway.post(content)

        assert_error(response, 413, "message_too_large", type="invalid_request_error")


def test_body__chunked__is_read(gateway: Gateway) -> None:
    response = gateway.post(iter([VALID[:7], VALID[7:9], VALID[9:]]))

    assert response.status_code == 200, response.text


def test_body__compressed__is_refused(gateway: Gateway) -> None:
    response = gateway.post(gzip.compress(VALID), headers={"content-encoding": "gzip"})

    message = assert_error(response, 400, response.json()["error"]["code"], type="invalid_request_error")
    assert "encoding" in message.lower()


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ""]
)
def test_content_type__other_than_json__body_decides(gateway: Gateway, content_type: str) -> None:
    good = gateway.post(VALID, headers={"content-type": content_type})
    bad = gateway.post(b"a=b", headers={"content-type": content_type})

    assert good.status_code == 200, good.text
    assert_error(bad, 400, "invalid_json")


def test_body__slow_loris__is_given_up_after_the_set_time(brisk_scripted: Scripted) -> None:
    gateway, _ = brisk_scripted(play.answer())
    deadline = time.monotonic() + TIMEOUT_SECONDS
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        head = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
        connection.sendall(f"{head}content-length: 1000\r\n\r\n".encode())
        connection.settimeout(0.2)
        answer = b""
        # The client sends a byte whenever nothing has come for 0.2 s, as the slow-body attack does.
        while b"request_timeout" not in answer and time.monotonic() < deadline:
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                connection.sendall(b" ")
                continue
            if not piece:
                break
            answer += piece

    assert answer.startswith(b"HTTP/1.1 408"), answer[:200]
    assert b'"code":"request_timeout"' in answer.replace(b'": "', b'":"')
    assert b"x-request-id: " in answer


def test_connection__closed_inside_the_body__leaves_the_worker_well(gateway: Gateway) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
            connection.sendall(
                f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
                f"content-length: 1000\r\n\r\n{{".encode()
            )

    assert gateway.post(body()).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_method__other_than_post__is_refused(gateway: Gateway, method: str) -> None:
    response = gateway.client.request(method, ENDPOINT, headers=gateway.headers)

    assert_error(response, 405, "method_not_allowed")


@pytest.mark.parametrize("path", ["", "/", "/chat", "/chats", "/../x"])
def test_path__unknown_below_the_gateway__is_404_in_the_envelope(gateway: Gateway, path: str) -> None:
    response = gateway.client.post(f"/api/gateway/v1{path}", content=VALID, headers=gateway.headers)

    assert response.status_code == 404
    assert set(response.json()) == {"error"}


@settings(max_examples=examples(37, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_body__random_mutations__never_fail(gateway: Gateway, seed: int) -> None:
    source = random.Random(seed)
    raw = bytearray(
        json.dumps(
            body(
                tools=[{"type": "function", "function": {"name": "f"}}], stop=["x"], provider={"order": ["openai"]}, n=1
            )
        ).encode()
    )
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(raw))
        raw[at : at + source.randint(0, 3)] = source.choice(
            [b"", b'"', b"{", b"]", b"null", b"-1", b"\xff", b"\\u0000", b"1e9", source.randbytes(3)]
        )

    response = gateway.post(bytes(raw))

    assert response.status_code in (200, 400, 404), (bytes(raw), response.text)
    assert_request_id(response)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(37, 150), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    fields=st.dictionaries(
        st.sampled_from(
            ["model", "messages", "temperature", "max_tokens", "top_p", "n", "stop", "tools", "tool_choice", "models",
             "response_format", "thinking", "reasoning_effort", "provider", "seed", "user", "other"]
        ),
        JSON_VALUES,
        max_size=3,
    )
)  # fmt: skip
def test_field__any_json_value__never_fails(gateway: Gateway, fields: dict[str, object]) -> None:
    response = gateway.post(json.dumps({**body(), **fields}).encode())

    assert response.status_code in (200, 400, 404), (fields, response.text)
    assert_request_id(response)
