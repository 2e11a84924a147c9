from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.protocol.arrived import ArrivedRequest
from tests.config.test_direct import PATH, Endpoint, Served, post

HEAD = b"content-type: text/plain\r\ncontent-length: 2\r\n\r\n"


class Begins:
    begins = True

    def __init__(self, task: Endpoint, *, declines: bool = False) -> None:
        self._task = task
        self._declines = declines
        self.begun: list[ArrivedRequest] = []
        self.changes = 0
        self.called = asyncio.Event()

    def begin(self, request: ArrivedRequest) -> bool:
        if self._declines:
            return False
        self.begun.append(request)
        request.on_change = self._note_change
        return True

    def _note_change(self) -> None:
        self.changes += 1

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.called.set()
        await self._task(scope, receive, send)


class Held(Served):
    def __init__(self, *, declines: bool = False) -> None:
        super().__init__()
        self.endpoint = Begins(self._direct, declines=declines)
        self.direct = {PATH.encode(): self.endpoint}
        self.protocol._direct = self.direct

    async def request(self, *pieces: bytes) -> bytes:
        await super().request(*pieces)
        return b"".join(self.client.written)


async def test_request__that_comes_whole__starts_no_task() -> None:
    held = Held()

    assert await held.request(post(b'{"a":1}')) == b""

    (request,) = held.endpoint.begun
    assert request.whole_body() == b'{"a":1}'
    assert held.seen == []
    request.answer(HEAD, b"ok")
    assert held.client.written == [b"HTTP/1.1 200 OK\r\n" + HEAD + b"ok"]
    assert request.on_change is None


async def test_body__that_comes_in_pieces_at_once__starts_no_task() -> None:
    held = Held()
    request = post(b'{"a":1}')

    await held.request(request[:-7], request[-7:-3], request[-3:])

    assert held.endpoint.begun[0].whole_body() == b'{"a":1}'
    assert held.seen == []


async def test_request__that_is_declined__has_its_body_in_a_task() -> None:
    held = Held(declines=True)

    answer = await held.request(post(b'{"a":1}'))

    assert answer.endswith(b"ok")
    assert held.messages == [{"type": "http.request", "body": b'{"a":1}', "more_body": False}]


async def test_request__that_goes_on_in_a_task__has_its_body_there() -> None:
    held = Held()
    await held.request(post(b'{"a":1}'))
    (request,) = held.endpoint.begun
    request.whole_body()

    request.start(held._direct)

    assert (await held.request()).endswith(b"ok")
    assert held.messages == [{"type": "http.request", "body": b'{"a":1}', "more_body": False}]
    assert held.endpoint.changes == 0


async def test_body__that_lets_its_head_wait__is_awaited_by_a_task() -> None:
    held = Held()
    request = post(b'{"a":1}')
    held.protocol.data_received(request[:-7])
    assert held.seen == []

    await held.endpoint.called.wait()

    assert (await held.request(request[-7:])).endswith(b"ok")
    assert held.endpoint.begun == []


async def test_body__that_comes_in_pieces__is_begun_when_it_is_whole() -> None:
    held = Held()
    request = post(b"x" * 500_000)

    await held.request(request[:200_000], request[200_000:400_000], request[400_000:])

    assert held.endpoint.begun[0].whole_body() == b"x" * 500_000
    assert not held.client.is_paused


async def test_body__that_is_large__is_awaited_by_a_task() -> None:
    held = Held()
    request = post(b"x" * 1_500_000)

    answer = await held.request(request[:1_200_000], request[1_200_000:])

    assert answer.endswith(b"ok")
    assert held.endpoint.begun == []
    assert b"".join(message["body"] for message in held.messages) == b"x" * 1_500_000


async def test_body__that_is_large_and_comes_whole__lets_the_connection_be_read() -> None:
    held = Held()
    await held.request(post(b"x" * 1_500_000))
    assert held.client.is_paused

    assert held.endpoint.begun[0].whole_body() == b"x" * 1_500_000

    assert not held.client.is_paused


async def test_body__that_a_task_awaits__pauses_the_connection_sooner() -> None:
    held = Held()
    request = post(b"x" * 200_000)
    held.protocol.data_received(request[:1000])
    held.protocol._release()

    held.protocol.data_received(request[1000:100_000])

    assert held.client.is_paused
    assert (await held.request(request[100_000:])).endswith(b"ok")


async def test_client__that_leaves_within_its_body__is_left_to_a_task() -> None:
    held = Held()
    held.protocol.data_received(post(b'{"a":1}')[:-3])

    held.protocol.connection_lost(None)
    await held.request()

    assert held.messages[-1]["type"] == "http.disconnect"


async def test_client__that_leaves_after_its_request__is_a_change() -> None:
    held = Held()
    await held.request(post())

    held.protocol.connection_lost(None)

    assert held.endpoint.changes == 1
    assert not held.endpoint.begun[0].takes_answer


async def test_server__that_shuts_down__is_a_change() -> None:
    held = Held()
    await held.request(post())

    held.protocol.shutdown()

    assert held.endpoint.changes == 1
    assert not held.endpoint.begun[0].takes_answer


async def test_server__that_shuts_down_without_a_request__closes_the_connection() -> None:
    held = Held()

    held.protocol.shutdown()

    assert held.client.is_closed


async def test_head__with_a_broken_body__is_refused_after_a_task_began() -> None:
    held = Held()
    request = f"POST {PATH} HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    held.protocol.data_received(request)

    answer = await held.request(b"zz\r\n")

    assert b" 400 " in answer
    assert held.messages[-1]["type"] == "http.disconnect"


async def test_request__that_expects_100_continue__is_never_held() -> None:
    held = Held()
    request = post(b'{"a":1}', more="Expect: 100-continue\r\n")

    answer = await held.request(request[:-7], request[-7:])

    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert held.endpoint.begun == []


async def test_request__behind_one_that_is_not_answered__waits_for_a_task() -> None:
    held = Held()
    await held.request(post(b"1") + post(b"2"))
    (first,) = held.endpoint.begun
    assert first.whole_body() == b"1"

    first.answer(HEAD, b"ok")

    assert (await held.request()).count(b"HTTP/1.1 200 OK") == 2
    assert held.messages == [{"type": "http.request", "body": b"2", "more_body": False}]


@pytest.mark.parametrize("more", ["Connection: close\r\n", "Connection: close, x\r\n"])
async def test_request__that_ends_the_connection__takes_no_answer_in_one_write(more: str) -> None:
    held = Held()
    await held.request(post(more=more))

    assert not held.endpoint.begun[0].takes_answer
