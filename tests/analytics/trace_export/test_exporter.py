"""`manage.py export_traces` as a process: it follows the destinations, and spans arrive once, whatever is killed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.models import TraceDestination, TraceDestinationStatus
from analytics.request_log.record import SpoolEntry
from analytics.spool.handover import handed
from analytics.telemetry.request_spans import request_spans
from core.models import Project
from tests.analytics.trace_export.process import ExporterProcess, ship
from tests.factories.analytics import make_entry
from tests.factories.core import make_project
from tests.fakes.collector import Collector, Reply, collector
from tests.services import START_SECONDS
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/api/llm/trace-destinations"
KILLS = 6
SECRET = "lf-0123456789abcdef"


@pytest.fixture
def exporter(spool: Path, settings: Settings) -> Iterator[ExporterProcess]:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    running = ExporterProcess(spool)
    yield running
    running.close()


def export_to(api: APIClient, url: str, **values: Any) -> UUID:
    answer = api.post(PATH, {"name": url, "endpoint": url, "headers": {"authorization": f"Bearer {SECRET}"}, **values})
    assert answer.status_code == 201, answer.content
    return UUID(answer.json()["id"])


def is_followed(spool: Path, project: Project, *, content: bool = False) -> bool:
    """Returns whether the exporter has told the shipper of a project's destinations."""
    try:
        wanted = json.loads((spool / "export" / "wanted.json").read_bytes())
    except FileNotFoundError:
        return False
    return bool(wanted.get(str(project.pk)) is content)


def follow(spool: Path, project: Project) -> None:
    wait_until(lambda: is_followed(spool, project), seconds=START_SECONDS, what="the exporter to know the destination")


def entries_of(project: Project, number: int) -> list[SpoolEntry]:
    return [make_entry(project_id=str(project.pk), session_id="s") for _ in range(number)]


def keys_of(*entries: SpoolEntry) -> set[tuple[str, str]]:
    return {(row.trace_id, row.span_id) for entry in entries for row in request_spans(entry.record)}


def is_sent(spool: Path) -> bool:
    return not handed(spool) and not list((spool / "export").glob("*/*.batch"))


def test_destinations__two_of_a_project_and_one_of_another__each_gets_its_own(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    with collector() as second:
        first_id = export_to(api, destination.url)
        export_to(api, second.url, sampling_ratio=0.5)
        other = make_project()
        TraceDestination.objects.create(project=other, name="other", endpoint=f"{second.url}/other/v1/traces")
        for one in (project, other):
            follow(spool, one)
        mine, theirs = entries_of(project, 40), entries_of(other, 3)

        ship(spool, *mine, *theirs, make_entry())

        wait_until(lambda: is_sent(spool), seconds=START_SECONDS, what="all to be sent")
        assert set(destination.arrivals()) == keys_of(*mine)
        assert {span.span_id.hex() for post in second.taken if "other" in post.path for span in post.spans} == {
            span for _, span in keys_of(*theirs)
        }
        sampled = {span.trace_id for post in second.taken if "other" not in post.path for span in post.spans}
        assert 0 < len(sampled) < 40
        assert set(destination.arrivals().values()) | set(second.arrivals().values()) == {1}

    status = wait_until(
        lambda: (api.get(f"{PATH}/{first_id}").json()["status"]) if TraceDestinationStatus.objects.filter(
            destination_id=first_id, sent_spans=40
        ).exists() else None,
        what="the status",
    )  # fmt: skip
    assert (status["waiting_spans"], status["dropped_spans"], status["last_error"]) == (0, 0, "")
    assert status["last_success_at"] is not None
    assert TraceDestinationStatus.objects.get(destination_id=first_id).host == "host-of-test"


def test_destination__disabled_changed_and_removed__followed(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    destination_id = export_to(api, destination.url)
    one = f"{PATH}/{destination_id}"
    follow(spool, project)
    destination.usual = Reply(503)
    waiting = entries_of(project, 2)
    ship(spool, *waiting)
    wait_until(lambda: len(destination.posts) > 0, what="a try")

    api.patch(one, {"enabled": False})
    wait_until(lambda: not (spool / "export" / "wanted.json").read_bytes().count(str(project.pk).encode()))
    ship(spool, *entries_of(project, 1))
    destination.usual = Reply()
    api.patch(one, {"enabled": True})
    wait_until(lambda: is_sent(spool), what="what waited to be sent")
    assert set(destination.arrivals()) == keys_of(*waiting)
    assert set(destination.arrivals().values()) == {1}

    destination.usual = Reply(503)
    follow(spool, project)
    ship(spool, *entries_of(project, 1))
    folder = spool / "export" / str(destination_id)
    wait_until(lambda: any(folder.glob("*.batch")), what="a batch that waits")
    project.delete()
    wait_until(lambda: not folder.exists(), what="the folder of the project to go")
    assert SECRET not in exporter.log.read_text()


def test_killed__before_the_collector_takes_it__arrives_once(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    export_to(api, destination.url)
    follow(spool, project)
    # The process dies after the post was read, and the collector refuses it.
    destination.replies = [Reply(503), Reply(503, before=exporter.kill)]
    entries = entries_of(project, 5)
    ship(spool, *entries)
    wait_until(lambda: len(destination.posts) == 2, what="the second try")

    exporter.restart()

    wait_until(lambda: is_sent(spool), seconds=START_SECONDS, what="the batch to be sent")
    assert set(destination.arrivals()) == keys_of(*entries)
    assert set(destination.arrivals().values()) == {1}
    assert len({(post.raw, post.headers["idempotency-key"]) for post in destination.posts}) == 1


def test_killed__after_the_collector_took_it_and_before_it_answered__same_bytes_and_id_again(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    export_to(api, destination.url)
    follow(spool, project)
    destination.replies = [Reply(before=exporter.kill)]
    entries = entries_of(project, 5)
    ship(spool, *entries)
    wait_until(lambda: len(destination.posts) == 1, what="the post")

    exporter.restart()

    wait_until(lambda: is_sent(spool), seconds=START_SECONDS, what="the batch to be sent")
    # Nobody can tell this from a kill before it: a collector that knows the id, or spans by their ids, has each once.
    first, second = destination.taken
    assert (first.raw, first.headers["idempotency-key"]) == (second.raw, second.headers["idempotency-key"])
    assert set(destination.arrivals()) == keys_of(*entries)


def test_killed__again_and_again_at_random__every_span_arrives_and_only_whole_batches_twice(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    export_to(api, destination.url)
    follow(spool, project)
    chance, entries = random.Random(), entries_of(project, 0)
    for _ in range(KILLS):
        seen = len(destination.posts)
        made = entries_of(project, chance.randrange(1, 30))
        entries += made
        ship(spool, *made)
        # The kill comes before the batch is made, while it is being sent, or a little after it.
        if chance.random() < 0.7:
            wait_until(lambda: len(destination.posts) > seen, seconds=START_SECONDS)  # noqa: B023 - called at once
        exporter.restart()

    wait_until(lambda: is_sent(spool), seconds=START_SECONDS, what="all to be sent")
    arrivals = destination.arrivals()
    assert set(arrivals) == keys_of(*entries)
    by_id = {post.headers["idempotency-key"]: post.raw for post in destination.taken}
    assert all(post.raw == by_id[post.headers["idempotency-key"]] for post in destination.taken)
    once = [span for raw in by_id.values() for post in destination.taken if post.raw == raw for span in post.spans]
    assert len({(span.trace_id, span.span_id) for span in once}) == len(arrivals)
    # Each batch that came twice is due to one kill.
    assert len(destination.taken) - len(by_id) <= KILLS


def test_sigterm__collector_is_about_to_answer__is_waited_for(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    export_to(api, destination.url)
    follow(spool, project)
    codes: list[int] = []
    stopping = threading.Thread(target=lambda: codes.append(exporter.stop()))
    destination.replies = [Reply(before=stopping.start)]
    ship(spool, *entries_of(project, 1))

    wait_until(lambda: bool(codes), what="the end of the exporter")

    assert codes == [0]
    assert is_sent(spool)
    assert len(destination.posts) == 1


def test_second_exporter__of_the_same_spool__ends(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    export_to(api, destination.url)
    follow(spool, project)
    second = ExporterProcess(spool)
    wait_until(lambda: "Another exporter" in second.log.read_text(), seconds=START_SECONDS)
    second.close()


def test_headers__no_longer_readable__wait_until_they_are_entered_again(
    api: APIClient, project: Project, spool: Path, destination: Collector, exporter: ExporterProcess
) -> None:
    one = export_to(api, destination.url)
    row = TraceDestination.objects.get(pk=one)
    row.encrypted_headers = "gAAAAA"
    row.save()
    follow(spool, project)
    ship(spool, *entries_of(project, 1))
    wait_until(
        lambda: TraceDestinationStatus.objects.filter(last_error__contains="no longer be decrypted").exists(),
        what="the error",
    )
    assert api.get(f"{PATH}/{one}").json()["headers"] == {}

    api.patch(f"{PATH}/{one}", {"headers": {"authorization": "Bearer other"}})

    wait_until(lambda: is_sent(spool), what="the batch to be sent")
    assert [post.headers["authorization"] for post in destination.posts] == ["Bearer other"]
