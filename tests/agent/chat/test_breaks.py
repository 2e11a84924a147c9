from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.agent.chat.conftest import LEASE_SECONDS, Played
from tests.agent.chat.playing import (
    PATH,
    agent,
    calls,
    chat,
    headers_of,
    messages,
    post,
    read_events,
    running,
    says,
)
from tests.fakes.scripted import DONE, ROLE, chunk, endless, hang
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway, accepts, free_port
from tests.gateway.spooled import spooled_entries
from tests.waiting import TIMEOUT_SECONDS


@contextmanager
def open_chat(gateway: Gateway, *, port: int | None = None, **body: Any) -> Iterator[socket.socket]:
    content = json.dumps({"message": "What did we spend?", **body}).encode()
    lines = [f"POST {PATH} HTTP/1.1", "host: localhost", "content-type: application/json"]
    lines += [f"content-length: {len(content)}", *(f"{name}: {value}" for name, value in headers_of(gateway).items())]
    with socket.create_connection(("127.0.0.1", port or gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        yield connection


def read_until(connection: socket.socket, text: bytes, received: bytes = b"") -> bytes:
    while b"\n\n" not in received.partition(text)[2]:
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    return received


def conversation_of(received: bytes) -> str:
    found: str = json.loads(received.split(b"data: ")[1].split(b"\n\n")[0])["conversation_id"]
    return found


def until_free(gateway: Gateway, conversation_id: str) -> None:
    assert not gateway.service.until(
        lambda: running(gateway, conversation_id), lambda is_running: not is_running, seconds=TIMEOUT_SECONDS
    )


def test_client__leaves__stops_the_model_and_keeps_the_partial_answer(played: Played) -> None:
    gateway, script = played(endless(), says("Where was I?"))
    with open_chat(gateway) as connection:
        conversation_id = conversation_of(read_until(connection, b"word"))

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    until_free(gateway, conversation_id)
    _, answer = messages(gateway, conversation_id)
    assert answer["state"] == "cancelled"
    assert answer["content"].startswith("word ")
    record = gateway.record(answer["request_id"])
    assert (record.outcome, record.source) == ("cancelled", "agent")
    assert chat(gateway, "Go on", conversation_id=conversation_id).text == "Where was I?"
    replayed = json.loads(script.received[1].body)["messages"]
    assert replayed[2] == {"role": "assistant", "content": answer["content"]}


def test_client__leaves_before_a_word__leaves_its_question(played: Played) -> None:
    gateway, script = played(hang, says("Here."))
    with open_chat(gateway) as connection:
        conversation_id = conversation_of(read_until(connection, b"conversation_created"))
        script.wait_for(1, TIMEOUT_SECONDS)

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    until_free(gateway, conversation_id)
    assert [row["role"] for row in messages(gateway, conversation_id)] == ["user"]
    assert chat(gateway, "Again", conversation_id=conversation_id).text == "Here."


def test_client__leaves_between_steps__its_calls_and_results_are_replayed(played: Played) -> None:
    gateway, script = played(calls(("get_project", {}), ("get_project", {})), hang, says("Both are there."))
    with open_chat(gateway) as connection:
        conversation_id = conversation_of(read_until(connection, b"conversation_created"))
        script.wait_for(2, TIMEOUT_SECONDS)

    until_free(gateway, conversation_id)
    assert [row["role"] for row in messages(gateway, conversation_id)] == ["user", "assistant", "tool", "tool"]
    assert chat(gateway, "Go on", conversation_id=conversation_id).types[-1] == "done"
    replayed = json.loads(script.received[2].body)["messages"]
    assert [message["role"] for message in replayed] == ["system", "user", "assistant", "tool", "tool", "user"]


def test_second_chat__in_the_same_conversation__is_409_on_both_workers(played: Played) -> None:
    gateway, script = played(endless(), says("Now."))
    with open_chat(gateway) as connection:
        conversation_id = conversation_of(read_until(connection, b"word"))
        # The wait is longer than a lease that is not renewed.
        held_until = time.monotonic() + 1.5 * LEASE_SECONDS
        gateway.service.until(time.monotonic, lambda now: now > held_until, seconds=TIMEOUT_SECONDS)
        for port in gateway.service.ports:
            refused = post(gateway, {"message": "And?", "conversation_id": conversation_id}, port=port)
            assert (refused.status_code, refused.json()["error"]["type"]) == (409, "conflict_error")
            assert refused.json()["error"]["code"] == "conversation_busy"
        assert running(gateway, conversation_id)

    until_free(gateway, conversation_id)
    assert [row["role"] for row in messages(gateway, conversation_id)] == ["user", "assistant"]
    assert chat(gateway, "And?", conversation_id=conversation_id, port=gateway.service.ports[1]).text == "Now."
    assert len(script.received) == 2


def test_next_message__as_soon_as_the_last_event_is_there__is_taken(played: Played) -> None:
    gateway, _ = played(says("Here."))
    conversation_id = chat(gateway).conversation_id

    for number in range(10):
        port = gateway.service.ports[number % 2]
        with open_chat(gateway, port=port, conversation_id=conversation_id) as connection:
            assert b"200 OK" in read_until(connection, b'"done"')


def test_chats__in_two_conversations__run_at_once(played: Played) -> None:
    gateway, _ = played(endless(), says("Quick."))
    with open_chat(gateway) as connection:
        read_until(connection, b"word")
        assert chat(gateway, "Another").text == "Quick."


def test_conversation__deleted_while_the_agent_answers__ends_with_error(played: Played) -> None:
    gateway, script = played(endless())
    with open_chat(gateway) as connection:
        received = read_until(connection, b"word")
        conversation_id = conversation_of(received)
        assert agent(gateway, "DELETE", f"conversations/{conversation_id}").status_code == 204
        received = read_until(connection, b'"error"', received)

    assert b"deleted" in received
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    assert agent(gateway, "GET", f"conversations/{conversation_id}/messages").status_code == 404


def test_agent__switched_off_between_steps__ends_with_error(played: Played) -> None:
    async def switched_off(received: Received, connection: Connection) -> None:
        gateway.service.set_routing(gateway.project_id, agent_enabled=False)
        await calls(("get_project", {}))(received, connection)

    gateway, script = played(switched_off, says("Never."))

    reply = read_events(post(gateway, {"message": "hi"}).content)

    assert "switched off" in reply.error
    assert len(script.received) == 1


def started_worker(gateway: Gateway, **options: Any) -> tuple[int, Any]:
    service = gateway.service
    port = free_port()
    service.start_worker(port, **options)
    service.wait_until_serving(port)
    return port, service._children[-1]


def test_worker__is_killed__conversation_opens_when_its_lease_has_run_out(played: Played) -> None:
    gateway, script = played(calls(("get_project", {})), endless(), says("There you are."))
    port, worker = started_worker(gateway)
    with open_chat(gateway, port=port) as connection:
        conversation_id = conversation_of(read_until(connection, b"word"))
        worker.kill()
        worker.wait(TIMEOUT_SECONDS)

    until_free(gateway, conversation_id)
    assert [row["role"] for row in messages(gateway, conversation_id)] == ["user", "assistant", "tool"]
    assert chat(gateway, "Are you there?", conversation_id=conversation_id).text == "There you are."
    replayed = json.loads(script.received[2].body)["messages"]
    assert [message["role"] for message in replayed] == ["system", "user", "assistant", "tool", "user"]


def test_worker__stops__sends_an_error_and_keeps_the_partial_answer(played: Played) -> None:
    gateway, script = played(endless(), says("Back again."))
    port, worker = started_worker(gateway)
    with open_chat(gateway, port=port) as connection:
        received = read_until(connection, b"word")
        conversation_id = conversation_of(received)
        worker.send_signal(signal.SIGTERM)
        received = read_until(connection, b'"error"', received)
        assert b"restarting" in received
    worker.wait(TIMEOUT_SECONDS)

    assert worker.returncode in (0, -signal.SIGTERM)
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    assert not running(gateway, conversation_id)
    _, answer = messages(gateway, conversation_id)
    assert answer["state"] == "cancelled"
    assert chat(gateway, "Go on", conversation_id=conversation_id).text == "Back again."


def test_worker__stops_while_the_agent_is_about_to_end__lets_it(played: Played) -> None:
    stopping = threading.Event()

    async def slow(received: Received, connection: Connection) -> None:
        await connection.start_stream()
        for event in (ROLE, chunk({"content": "Slow"})):
            await connection.send_chunk(event)
        await asyncio.to_thread(stopping.wait, TIMEOUT_SECONDS)
        for event in (chunk({"content": " but whole"}), DONE):
            await connection.send_chunk(event)
        await connection.end_stream()

    gateway, _ = played(slow)
    port, worker = started_worker(gateway, graceful_seconds=int(TIMEOUT_SECONDS))
    with open_chat(gateway, port=port) as connection:
        received = read_until(connection, b"Slow")
        worker.send_signal(signal.SIGTERM)
        assert not gateway.service.until(lambda: accepts(port), lambda is_open: not is_open)
        stopping.set()
        received = read_until(connection, b'"done"', received)
    worker.wait(TIMEOUT_SECONDS)

    assert b" but whole" in received


def test_records__of_chats_that_broke_off__are_there_once(played: Played) -> None:
    gateway, script = played(endless())
    for _ in range(3):
        with open_chat(gateway) as connection:
            read_until(connection, b"word")
    for received in script.received:
        assert received.gone.wait(TIMEOUT_SECONDS)

    def found() -> list[str]:
        entries = spooled_entries(gateway.service.var / "spool")
        return [str(entry.record.outcome) for entry in entries if entry.record.project_id == gateway.project_id]

    assert (
        gateway.service.until(found, lambda outcomes: len(outcomes) >= 3, seconds=TIMEOUT_SECONDS) == ["cancelled"] * 3
    )
