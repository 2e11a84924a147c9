"""Spans of a whole service's requests arrive at a collector, each once, whatever part of the export is killed."""

from __future__ import annotations

import json

import requests

from tests.fakes.collector import collector
from tests.live.conftest import StartService
from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
KILLED = ("shipper", "exporter", "shipper", "exporter")


def add_destination(service: LiveService, url: str) -> None:
    headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
    body = {"name": "collector", "endpoint": url}
    answer = requests.post(f"{service.base_url}/api/llm/trace-destinations", json=body, headers=headers, timeout=30)
    assert answer.status_code == 201, answer.text
    wanted = service.var_dir / "spool" / "export" / "wanted.json"
    wait_until(
        lambda: wanted.exists() and service.project_id in json.loads(wanted.read_bytes()),
        seconds=START_SECONDS,
        what="the exporter to know the destination",
    )


def test_requests__shipper_and_exporter_killed__spans_arrive_once_in_the_clients_trace(
    start_service: StartService,
) -> None:
    service = start_service({"ALLOW_PRIVATE_UPSTREAMS": "1"})
    headers = {"x-svc-session-id": "exported", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    client = service.openai(default_headers=headers)
    with collector() as destination:
        add_destination(service, destination.url)
        for role in KILLED:
            for _ in range(5):
                client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "a secret"}])
            service.wait_for_successor(role, service.kill(role))
        expected = 2 * 5 * len(KILLED)
        wait_until(lambda: len(destination.arrivals()) == expected, seconds=2 * START_SECONDS, what="all spans")
        assert service.stop() == 0

        by_id = {post.headers["idempotency-key"]: post for post in destination.taken}
        spans = [span for post in by_id.values() for span in post.spans]
        # A batch that came twice, killed between the collector's answer and its arrival, is the same batch.
        assert all(post.raw == by_id[post.headers["idempotency-key"]].raw for post in destination.taken)
        assert len(spans) == len({span.span_id for span in spans}) == expected
        assert {span.trace_id.hex() for span in spans} == {TRACE}
        assert sum(span.parent_span_id.hex() == PARENT for span in spans) == expected / 2
        assert {post.resource["prompt_gateway.project_id"] for post in by_id.values()} == {service.project_id}
        assert not any(b"a secret" in post.request.SerializeToString() for post in by_id.values())
