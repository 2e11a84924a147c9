"""What may happen between a request and its answer: a worker with plans and one without end it in the same way."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from analytics.request_log.record import Outcome
from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, Step, completion
from tests.fakes.upstream import Connection, Received, head
from tests.gateway.conftest import assert_log_is_clean
from tests.gateway.plans.both import PlansService, same
from tests.gateway.service import Gateway, accepts
from tests.gateway.wire import ENDPOINT, body
from tests.waiting import TIMEOUT_SECONDS

SCRIPT = "lifecycle"
CONTENT = json.dumps(body()).encode()
ANSWER = json.dumps(completion()).encode()


@pytest.fixture(scope="module")
def brief() -> Iterator[PlansService]:
    """A service that soon gives up a provider."""
    settings = {"UPSTREAM_FIRST_BYTE_SECONDS": "3", "UPSTREAM_IDLE_SECONDS": "3", "UPSTREAM_TOTAL_SECONDS": "5"}
    with PlansService(**settings) as running:
        yield running
        assert_log_is_clean(running)


@pytest.fixture(scope="module")
def gateway(brief: PlansService) -> Iterator[Gateway]:
    with ScriptedServer() as server:
        made = brief.new_project(base_urls={"openai": server.base_url(SCRIPT)}, routing={"retry_enabled": False})
        made.upstream = server
        yield made


@pytest.fixture(scope="module")
def patient() -> Iterator[Gateway]:
    """A project of a service that waits for a provider for longer than for a worker to stop; what its workers log when
    they are stopped in the middle of a request is uvicorn's."""
    with PlansService() as running, ScriptedServer() as server:
        made = running.new_project(base_urls={"openai": server.base_url(SCRIPT)})
        made.upstream = server
        yield made


@pytest.fixture(autouse=True)
def _connected(gateway: Gateway) -> None:
    """Gives both workers a connection that a plan can use."""
    gateway.upstream.play(SCRIPT, play.answer())
    same(gateway, gateway.upstream, CONTENT)


def written(*pieces: bytes | float, end: str = "") -> Step:
    """Returns a step that writes the pieces as they are; numbers are pauses in seconds."""

    async def step(request: Received, connection: Connection) -> None:
        await play.stream(*pieces, end=end)(request, _Raw(connection))

    return step


class _Raw(Connection):
    """A connection on which the pieces of a stream are all that is written."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection._writer, connection.lost)

    async def start_stream(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Writes no head."""

    async def send_chunk(self, data: bytes) -> None:
        await self.send(data)

    async def end_stream(self) -> None:
        """Writes no end."""


HEAD = head(200, {"content-type": "application/json", "content-length": str(len(ANSWER))})
CHUNKED = head(200, {"content-type": "application/json", "transfer-encoding": "chunked"})
HALF = len(ANSWER) // 2

WHOLE: dict[str, Step] = {
    "head_first": written(HEAD, 0.1, ANSWER, end="end"),
    "in_pieces": written(HEAD, 0.05, ANSWER[:HALF], 0.05, ANSWER[HALF:], end="end"),
    "chunked": written(CHUNKED, b"%x\r\n%b\r\n" % (len(ANSWER), ANSWER), 0.05, b"0\r\n\r\n", end="end"),
    "until_the_end_of_the_connection": written(head(200, {}), 0.05, ANSWER, end="hang_up"),
    "behind_an_interim_answer": written(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.05, HEAD + ANSWER, end="end"),
}
OTHERS: dict[str, Step] = {
    "compressed": play.raw(200, gzip.compress(ANSWER), {"content-encoding": "gzip"}),
    "compressed_and_damaged": play.raw(200, ANSWER, {"content-encoding": "gzip"}),
    "cut_short": written(HEAD + ANSWER[:HALF], end="hang_up"),
    "reset_within": written(HEAD + ANSWER[:HALF], 0.05, end="reset"),
    "reset_before": play.reset,
    "hang_up_before": play.hang_up,
    "no_http": play.garbage,
    "no_http_within": written(CHUNKED + b"zz\r\n", end="hang"),
    "silent_before": play.hang,
    "silent_within": written(HEAD + ANSWER[:HALF], end="hang"),
    "too_slow": written(HEAD, *[piece for byte in ANSWER[:40] for piece in (bytes([byte]), 0.5)], end="hang"),
    "a_stream": play.stream(*play.text_events("a", "b")),
}


@pytest.mark.parametrize("step", WHOLE.values(), ids=WHOLE)
def test_whole_answer__however_it_comes__is_the_plans(gateway: Gateway, step: Step) -> None:
    gateway.upstream.play(SCRIPT, step)

    seen, planned = same(gateway, gateway.upstream, CONTENT)

    assert seen.answer == ANSWER
    assert planned


def test_answer__that_is_larger_than_what_is_read_ahead__is_the_same(gateway: Gateway) -> None:
    content = json.dumps(completion("x" * 3_000_000)).encode()
    gateway.upstream.play(SCRIPT, play.raw(200, content))

    assert same(gateway, gateway.upstream, CONTENT)[0].answer == content


@pytest.mark.parametrize("step", OTHERS.values(), ids=OTHERS)
def test_any_other_answer__is_the_stages(gateway: Gateway, step: Step) -> None:
    gateway.upstream.play(SCRIPT, step)

    seen, planned = same(gateway, gateway.upstream, CONTENT)

    assert len(seen.received) == 1
    assert not planned


@pytest.mark.parametrize(
    "failure",
    [play.status(500), play.status(429, headers={"retry-after": "0"}), play.reset],
    ids=["500", "429", "reset"],
)
def test_failure__is_retried(gateway: Gateway, failure: Step) -> None:
    retrying = gateway.service.new_project(base_urls={"openai": gateway.upstream.base_url(SCRIPT)})
    same(retrying, gateway.upstream, CONTENT)
    # Each of the two workers meets the failure first.
    gateway.upstream.play(SCRIPT, failure, play.answer(), failure, play.answer())

    seen, planned = same(retrying, gateway.upstream, CONTENT)

    assert (seen.status, len(seen.received)) == (200, 2)
    assert ("x-svc-retry-count", "1") in seen.headers
    assert not planned


@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_client__that_leaves__ends_the_providers_call(gateway: Gateway, worker: int) -> None:
    script = gateway.upstream.play(SCRIPT, play.hang)
    session = f"leaves-{worker}"
    connection = sent(gateway, worker, session=session)
    script.wait_for(1)

    connection.close()

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    (record,) = records(gateway, session)
    assert (record.outcome, record.status_code, record.tokens_estimated) == (Outcome.CANCELLED, 499, True)
    assert [attempt.status for attempt in record.attempts] == [0]


@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_client__that_closes_its_half__gets_its_answer(gateway: Gateway, worker: int) -> None:
    release = threading.Event()
    script = gateway.upstream.play(SCRIPT, after(release))
    connection = sent(gateway, worker)
    script.wait_for(1)

    connection.shutdown(socket.SHUT_WR)
    release.set()

    assert whole(connection).endswith(ANSWER)


@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_requests__that_come_together__are_answered_in_their_order(gateway: Gateway, worker: int) -> None:
    texts = [f"answer {number}" for number in range(3)]
    script = gateway.upstream.play(SCRIPT, *[play.answer(text, 0.05) for text in texts])
    connection = sent(gateway, worker, times=3)
    script.wait_for(3)
    connection.shutdown(socket.SHUT_WR)

    answers = whole(connection)

    places = [answers.index(text.encode()) for text in texts]
    assert places == sorted(places)
    assert answers.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_client__that_expects_100_continue__is_told_to_go_on(gateway: Gateway, worker: int) -> None:
    request = raw_request(gateway, more="expect: 100-continue\r\n")
    with socket.create_connection(("127.0.0.1", gateway.service.ports[worker]), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(request[: -len(CONTENT)])
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(CONTENT)
        connection.shutdown(socket.SHUT_WR)
        assert whole(connection).endswith(ANSWER)


@pytest.mark.parametrize("cut", [1, len(CONTENT) - 1])
@pytest.mark.parametrize("pause", [0.0, 0.3])
@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_body__that_comes_behind_its_head__is_read(gateway: Gateway, worker: int, pause: float, cut: int) -> None:
    request = raw_request(gateway)
    with socket.create_connection(("127.0.0.1", gateway.service.ports[worker]), timeout=TIMEOUT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(request[: -len(CONTENT)])
        threading.Event().wait(pause)
        connection.sendall(CONTENT[:cut])
        threading.Event().wait(pause)
        connection.sendall(CONTENT[cut:])
        connection.shutdown(socket.SHUT_WR)
        assert whole(connection).endswith(ANSWER)


@pytest.mark.parametrize("worker", [0, 1], ids=["plans", "stages"])
def test_client__that_leaves_within_its_body__is_recorded(gateway: Gateway, worker: int) -> None:
    session = f"within-{worker}"
    connection = socket.create_connection(("127.0.0.1", gateway.service.ports[worker]), timeout=TIMEOUT_SECONDS)
    connection.sendall(raw_request(gateway, session=session)[:-1])
    connection.close()

    (record,) = records(gateway, session)
    assert (record.outcome, record.status_code) == (Outcome.CANCELLED, 499)


def test_request_in_flight__is_counted_until_its_end(gateway: Gateway) -> None:
    release = threading.Event()
    script = gateway.upstream.play(SCRIPT, after(release))
    connection = sent(gateway, 0)
    script.wait_for(1)

    with connection:
        assert in_flight(gateway) == 1
        release.set()
        assert connection.recv(65536).endswith(ANSWER)
        assert in_flight(gateway) == 0


def test_worker__that_is_told_to_stop__answers_what_is_in_flight(patient: Gateway) -> None:
    patient.upstream.play(SCRIPT, play.answer())
    same(patient, patient.upstream, CONTENT)
    release = threading.Event()
    script = patient.upstream.play(SCRIPT, after(release))
    connection = sent(patient, 0, session="stops")
    script.wait_for(1)

    with stopped(patient, release.set):
        answer = whole(connection)

    assert b"connection: close" in answer
    assert answer.endswith(ANSWER)
    (record,) = records(patient, "stops")
    assert record.outcome is Outcome.SUCCESS


def test_worker__whose_time_to_stop_is_over__records_what_is_in_flight(patient: Gateway) -> None:
    patient.upstream.play(SCRIPT, play.answer())
    same(patient, patient.upstream, CONTENT)
    script = patient.upstream.play(SCRIPT, play.hang)
    with sent(patient, 0, session="over"):
        script.wait_for(1)
        with stopped(patient, lambda: None):
            pass

    (record,) = records(patient, "over")
    assert (record.outcome, record.status_code) == (Outcome.INTERRUPTED, 500)


def raw_request(gateway: Gateway, *, session: str = "", more: str = "") -> bytes:
    lines = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n{more}"
    lines += f"x-svc-session-id: {session}\r\n" if session else ""
    return f"{lines}content-length: {len(CONTENT)}\r\n\r\n".encode() + CONTENT


def sent(gateway: Gateway, worker: int, *, session: str = "", times: int = 1) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", gateway.service.ports[worker]), timeout=TIMEOUT_SECONDS)
    connection.sendall(raw_request(gateway, session=session) * times)
    return connection


def whole(connection: socket.socket) -> bytes:
    """Returns all that arrives until the gateway closes the connection, and closes it."""
    answer = b""
    with connection:
        while piece := connection.recv(65536):
            answer += piece
    return answer


def after(release: threading.Event) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        await play.stream(release, HEAD + ANSWER, end="")(request, _Raw(connection))

    return step


def in_flight(gateway: Gateway) -> int:
    count: int = gateway.service.client.get(f"{gateway.service.base_url()}/healthz").json()["in_flight"]
    return count


def records(gateway: Gateway, session: str) -> list[Any]:
    """Returns the records of a session, once there are any."""

    def found() -> list[Any]:
        return [e.record for e in gateway.service.spooled.entries() if e.record.session_id == session]

    return gateway.service.until(found, bool)


@contextmanager
def stopped(gateway: Gateway, then: Callable[[], None]) -> Iterator[None]:
    """Stops the worker with plans by SIGTERM, does `then`, and starts another one when it has ended."""
    service = gateway.service
    worker = service._children[0]
    worker.send_signal(signal.SIGTERM)
    assert service.until(lambda: not accepts(service.ports[0]), bool)
    then()
    yield
    worker.wait(TIMEOUT_SECONDS)
    service.start_worker(service.ports[0])
    service._children[0] = service._children.pop()
    service.wait_until_serving(service.ports[0])
