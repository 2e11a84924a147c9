"""The results of a batch are priced once, however often, by how many and with what interruptions they are fetched."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import openai

from tests.fakes.batches.openai import OpenAIBatches
from tests.gateway.batches.conftest import openai_client, priced, total
from tests.gateway.batches.lines import jsonl, line
from tests.gateway.service import Gateway
from tests.waiting import TIMEOUT_SECONDS

COUNT = 300
LINES = jsonl(*(line(f"line-{number}") for number in range(COUNT)))


def finished(gateway: Gateway, vendor: OpenAIBatches) -> str:
    """Returns the file of the results of a batch that has ended."""
    client = openai_client(gateway)
    file = client.files.create(file=("in.jsonl", LINES), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    vendor.finish(batch.id)
    return str(client.batches.retrieve(batch.id).output_file_id)


def content_of(client: openai.OpenAI, file_id: str) -> bytes:
    return client.files.content(file_id).content


def test_results__fetched_again__add_nothing(files: Gateway, vendor: OpenAIBatches) -> None:
    client, results = openai_client(files), finished(files, vendor)
    first = client.files.content(results).content
    before = total(priced(files, COUNT))

    assert client.files.content(results).content == first

    other = files.client.get("/api/gateway/v1/files", headers=files.headers)
    files.record(other)
    assert total(priced(files, COUNT)) == before > 0


def test_results__fetched_at_once_by_both_workers__are_priced_once(files: Gateway, vendor: OpenAIBatches) -> None:
    results = finished(files, vendor)
    vendor.hold_content = threading.Event()
    clients = [openai_client(files, port=port) for port in (*files.service.ports, *files.service.ports)]

    with ThreadPoolExecutor(len(clients)) as threads:
        fetches = [threads.submit(content_of, one, results) for one in clients]
        assert vendor.begun.wait(TIMEOUT_SECONDS)
        vendor.hold_content.set()
        bodies = {fetch.result(TIMEOUT_SECONDS) for fetch in fetches}

    assert bodies == {vendor.contents[results]}
    records = priced(files, COUNT)
    assert len({record.request_id for record in records}) == COUNT


def test_results__of_a_worker_that_was_killed_half_way__are_priced_by_the_next_fetch(
    files: Gateway, vendor: OpenAIBatches
) -> None:
    results = finished(files, vendor)
    vendor.hold_content = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        fetch = threads.submit(lambda: openai_client(files, port=files.service.ports[1]).files.content(results))
        assert vendor.begun.wait(TIMEOUT_SECONDS)
        files.service.kill_worker(1)
        vendor.hold_content.set()
        assert fetch.exception(TIMEOUT_SECONDS) is not None
    vendor.hold_content = None

    openai_client(files).files.content(results)

    assert total(priced(files, COUNT)) > Decimal(0)
