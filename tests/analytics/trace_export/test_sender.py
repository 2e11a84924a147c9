"""What a sender does with a destination's batches, whatever its collector answers."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from pytest_django import Settings

from analytics.telemetry.request_spans import request_spans
from analytics.trace_export import sender as sending
from analytics.trace_export.batches import Selection
from analytics.trace_export.delivery import Target, open_session
from analytics.trace_export.encoder import encoded
from analytics.trace_export.outbox import Outbox
from analytics.trace_export.sender import Destination, Sender
from tests.factories.analytics import make_record
from tests.fakes.collector import Collector, Reply, rejecting
from tests.waiting import eventually

ALL = Selection(1.0, include_content=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    monkeypatch.setattr(sending, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(sending, "_LOOK_SECONDS", 0.02)


def at(url: str, **headers: str) -> Destination:
    return Destination(uuid4(), str(uuid4()), True, ALL, Target(f"{url}/v1/traces", headers))


def outbox_of(destination: Destination, folder: Path, batches: int, *, at_us: int | None = None) -> Outbox:
    """Returns an outbox with batches of two spans each."""
    outbox = Outbox(folder / str(destination.id), ())
    for number in range(batches):
        rows = request_spans(make_record()) + request_spans(make_record())
        stem = f"{(at_us or time.time_ns() // 1000) + number}-{number:064x}"
        outbox.publish(outbox.draft(stem, [(encoded(destination.project_id, rows), len(rows))]))
    return outbox


@asynccontextmanager
async def running(destination: Destination, outbox: Outbox) -> AsyncIterator[Sender]:
    async with open_session() as session:
        sender = Sender(destination, outbox, session)
        task = asyncio.create_task(sender.run())
        yield sender
        sender.stop()
        await task


async def send_all(destination: Destination, outbox: Outbox) -> None:
    async with running(destination, outbox):
        await eventually(lambda: not outbox.waiting)


async def test_batches__collector_takes_them__each_once_and_no_file_left(
    tmp_path: Path, destination: Collector
) -> None:
    to = at(destination.url, authorization="Bearer secret-of-collector")
    outbox = outbox_of(to, tmp_path, 10)

    await send_all(to, outbox)

    assert (outbox.counts.sent, outbox.counts.dropped, outbox.counts.last_error) == (20, 0, "")
    assert outbox.counts.last_success > 0
    assert set(destination.arrivals().values()) == {1}
    assert len(destination.arrivals()) == 20
    assert {post.headers["authorization"] for post in destination.posts} == {"Bearer secret-of-collector"}
    assert len({post.headers["idempotency-key"] for post in destination.posts}) == 10
    assert not list(outbox.folder.glob("*.batch"))


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_batch__refused_for_now__same_bytes_and_id_again(
    tmp_path: Path, destination: Collector, status: int
) -> None:
    destination.replies = [Reply(status, b"busy", "text/plain")] * 3
    to = at(destination.url)
    outbox = outbox_of(to, tmp_path, 1)

    await send_all(to, outbox)

    assert [post.status for post in destination.posts] == [status] * 3 + [200]
    assert len({(post.raw, post.headers["idempotency-key"]) for post in destination.posts}) == 1
    assert set(destination.arrivals().values()) == {1}
    assert (outbox.counts.sent, outbox.counts.dropped) == (2, 0)
    assert outbox.counts.last_error == f"The collector answered {status}: busy"


async def test_batch__retry_after__is_waited_for(tmp_path: Path, destination: Collector) -> None:
    destination.replies = [Reply(429, headers={"retry-after": "1000"})]
    to = at(destination.url)
    outbox = outbox_of(to, tmp_path, 2)
    outbox.waiting = dict(list(outbox.waiting.items())[:1])

    async with running(to, outbox) as sender:
        await eventually(lambda: len(destination.posts) == 1 and sender._not_before > 0)
        assert 900 < sender._not_before - time.monotonic() <= 1000
        # Whoever has mended the destination does not wait for that.
        sender.change(replace(to, target=Target(f"{destination.url}/other/v1/traces", {})))
        await eventually(lambda: not outbox.waiting)

    assert [post.path for post in destination.posts] == ["/v1/traces", "/other/v1/traces"]


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500])
async def test_batch__refused_for_good__dropped_and_counted(
    tmp_path: Path, destination: Collector, status: int
) -> None:
    destination.replies = [Reply(status, headers={"location": "/v1/elsewhere"})]
    to = at(destination.url)
    outbox = outbox_of(to, tmp_path, 2)

    await send_all(to, outbox)

    assert (outbox.counts.sent, outbox.counts.dropped) == (2, 2)
    assert outbox.counts.last_error == f"The collector answered {status}."
    # A redirect is not followed.
    assert {post.path for post in destination.posts} == {"/v1/traces"}


async def test_batch__partly_rejected__counted_and_not_sent_again(tmp_path: Path, destination: Collector) -> None:
    destination.replies = [rejecting(1, "span too old")]
    to = at(destination.url)
    outbox = outbox_of(to, tmp_path, 1)

    await send_all(to, outbox)

    assert (outbox.counts.sent, outbox.counts.rejected, outbox.counts.dropped) == (1, 1, 0)
    assert outbox.counts.last_error == "The collector rejected 1 spans: span too old"
    assert len(destination.posts) == 1


async def test_collector__down_then_up__everything_arrives_once(tmp_path: Path, destination: Collector) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        to = at(f"http://127.0.0.1:{held.getsockname()[1]}")
        outbox = outbox_of(to, tmp_path, 5)
        async with running(to, outbox) as sender:
            await eventually(lambda: outbox.counts.last_error.startswith("No connection"))
            assert len(outbox.waiting) == 5
            sender.change(replace(to, target=Target(f"{destination.url}/v1/traces", {})))
            await eventually(lambda: not outbox.waiting)

    assert len(destination.arrivals()) == 10
    assert set(destination.arrivals().values()) == {1}


async def test_collector__slow__holds_up_no_other(tmp_path: Path, destination: Collector) -> None:
    release = threading.Event()

    def hold() -> None:
        release.wait()

    destination.replies = [Reply(before=hold)] * 4
    slow, quick = at(destination.url), at(destination.url)
    slow_box = outbox_of(slow, tmp_path, 4)
    async with running(slow, slow_box):
        await eventually(lambda: len(destination.posts) == 4)
        await send_all(quick, outbox_of(quick, tmp_path, 6))
        assert len(slow_box.waiting) == 4
        release.set()
        await eventually(lambda: not slow_box.waiting)

    assert set(destination.arrivals().values()) == {1}
    assert len(destination.arrivals()) == 20


async def test_private_address__not_allowed_any_more__nothing_is_sent(
    tmp_path: Path, destination: Collector, settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    to = at(destination.url)
    outbox = outbox_of(to, tmp_path, 1)

    async with running(to, outbox):
        await eventually(lambda: outbox.counts.last_error == "The address is on a private network.")

    assert (destination.posts, len(outbox.waiting)) == ([], 1)


async def test_name_of_a_private_address__at_the_time_of_connecting__nothing_is_sent(
    tmp_path: Path, destination: Collector, settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    to = at(destination.url.replace("127.0.0.1", "localhost"))
    outbox = outbox_of(to, tmp_path, 1)

    async with running(to, outbox):
        await eventually(lambda: outbox.counts.last_error != "")

    assert (destination.posts, len(outbox.waiting)) == ([], 1)


@pytest.mark.parametrize(("name", "value"), [("TRACE_EXPORT_BYTES", 1), ("TRACE_EXPORT_HOURS", 0.1)])
async def test_waiting__beyond_the_bounds__dropped_and_counted(
    tmp_path: Path, destination: Collector, settings: Settings, name: str, value: float
) -> None:
    setattr(settings, name, value)
    to = replace(at(destination.url), enabled=False)
    outbox = outbox_of(to, tmp_path, 3, at_us=time.time_ns() // 1000 - 3_600_000_000)

    async with running(to, outbox):
        await eventually(lambda: outbox.counts.dropped == 6)

    assert not outbox.waiting
    assert not destination.posts


def test_overdue__one_byte_too_many__the_oldest_alone(tmp_path: Path) -> None:
    outbox = outbox_of(at("http://127.0.0.1:9"), tmp_path, 3)
    first, *others = outbox.waiting.values()
    size = sum(batch.size for batch in outbox.waiting.values())
    assert list(outbox.overdue(max_bytes=size - 1, before=0.0)) == [first]
    assert list(outbox.overdue(max_bytes=size, before=0.0)) == []
    assert list(outbox.overdue(max_bytes=size, before=others[-1].at)) == [first, others[0]]


def test_outbox__opened_again__has_the_same_batches_in_order(tmp_path: Path) -> None:
    outbox = outbox_of(at("http://127.0.0.1:9"), tmp_path, 3)
    outbox.counts.sent = 7
    outbox.save(outbox.state())

    again = Outbox(outbox.folder, ())

    assert list(again.waiting.values()) == list(outbox.waiting.values())
    assert again.counts.sent == 7
    assert len({batch.id for batch in again.waiting.values()}) == 3


def test_outbox__killed_between_the_steps__drafts_are_made_again_or_used(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / str(uuid4()), ())
    outbox.draft(f"1-{'a' * 64}", [(b"unfinished", 1)])
    outbox.draft(f"2-{'b' * 64}", [(b"whole", 2)])

    # The file of the first is still there, that of the second is gone.
    again = Outbox(outbox.folder, {f"1-{'a' * 64}"})

    assert [batch.path.read_bytes() for batch in again.waiting.values()] == [b"whole"]
    assert not list(outbox.folder.glob("*.new"))
