"""Tests the sync over HTTP: its effects on the table, on the history and on the prices known before."""

from __future__ import annotations

import json
import select
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from integrations.errors import SyncBrokenOffError, SyncRunningError
from integrations.models import CatalogState, ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing import fetch, sync
from integrations.pricing.cost import Price
from integrations.pricing.reading import READER
from integrations.pricing.services import load_shipped_prices, set_price
from integrations.pricing.sync import sync_prices
from integrations.pricing.table import lock_table
from integrations.selectors import price_table
from integrations.signals import prices_changed
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import catalog_b, model_a
from tests.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.django_db

A = {"gpt-4o": model_a(2.5, 10, 1.25), "gpt-4.1": model_a(2, 8), "claude-x": model_a(3, 15, 0.3, 3.75, "anthropic")}
B = catalog_b(openai={"gpt-4o": (99, 99), "o9": (1, 4)}, groq={"meta-llama/llama-9": (0.1, 0.2)})
SANDBOX = ("sandbox", "*")


def run() -> PriceSyncLog:
    return sync_prices(trigger=PriceSyncLog.Trigger.COMMAND)


def counts(log: PriceSyncLog) -> tuple[str, int, int, int, int]:
    return (log.status, log.added, log.updated, log.removed, log.skipped)


def statuses(log: PriceSyncLog) -> list[str]:
    return [log.catalogs[source]["status"] for source in ("catalog_a", "catalog_b")]


@pytest.fixture
def synced(server: CatalogServer) -> Iterator[CatalogServer]:
    server.serve("/a", A, etag='"a1"')
    server.serve("/b", B, etag='W/"b1"')
    run()
    server.requests.clear()
    yield server


def test_sync__first_run__both_catalogs_and_the_first_counts(server: CatalogServer) -> None:
    server.serve("/a", A)
    server.serve("/b", B)
    log = run()
    assert counts(log) == ("success", 6, 0, 0, 0)
    assert log.errors == [] and log.finished_at is not None
    assert log.catalogs["catalog_a"] == {"status": "read", "models": 3, "refused": 0}
    table = price_table()
    assert table["openai", "gpt-4o"] == Price(Decimal("2.5"), Decimal(10), Decimal("1.25"))
    assert table["openai", "o9"] == Price(Decimal(1), Decimal(4))
    assert {(row.model, row.source) for row in ModelPrice.objects.filter(provider="openai")} == {
        ("gpt-4o", "catalog_a"),
        ("gpt-4.1", "catalog_a"),
        ("o9", "catalog_b"),
    }
    assert SANDBOX in table


def test_sync__etags__sent_and_nothing_changes(synced: CatalogServer) -> None:
    log = run()
    assert sorted(synced.requests) == [("/a", '"a1"'), ("/b", 'W/"b1"')]
    assert statuses(log) == ["not_modified", "not_modified"]
    assert counts(log) == ("success", 0, 0, 0, 6)


def test_sync__address_or_reader_changed__etag_not_sent(
    synced: CatalogServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRICING_CATALOGS = {**settings.PRICING_CATALOGS, "catalog_a": f"{synced.url}/a?v=2"}
    synced.serve("/a?v=2", A)
    run()
    assert ("/a?v=2", None) in synced.requests
    synced.requests.clear()
    monkeypatch.setattr(sync, "READER", READER + 1)
    run()
    assert sorted(synced.requests) == [("/a?v=2", None), ("/b", None)]


def truncated(request: Any) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000000")
    request.end_headers()
    request.wfile.write(b'{"gpt-4o": {')
    request.close_connection = True


def cut_json(request: Any) -> None:
    body = b'{"gpt-4o": {"litellm_provider": "open'
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def endless(request: Any) -> None:
    request.send_response(200)
    request.end_headers()
    try:
        while True:
            request.wfile.write(b" " * 10_000)
    except OSError:
        pass


def elsewhere(request: Any) -> None:
    request.send_response(302)
    request.send_header("Location", "/a")
    request.send_header("Content-Length", "0")
    request.end_headers()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (truncated, "broke off"),
        (cut_json, "not valid JSON"),
        (endless, "larger than"),
        (elsewhere, "redirects"),
    ],
)
def test_sync__one_catalog_broken__other_counts_and_the_last_good_table_stays(
    synced: CatalogServer, settings: Settings, answer: Any, problem: str
) -> None:
    settings.PRICING_MAX_BYTES = 100_000
    synced.pages["/a"] = answer
    synced.serve("/b", catalog_b(openai={"gpt-4o": (99, 99), "o9": (1, 5)}, groq={"meta-llama/llama-9": (0.1, 0.2)}))
    before = price_table()
    log = run()
    assert counts(log) == ("partial", 0, 1, 0, 5)
    assert statuses(log) == ["failed", "read"]
    (error,) = log.errors
    assert error["source"] == "catalog_a" and problem in error["message"]
    assert price_table() == {**before, ("openai", "o9"): Price(Decimal(1), Decimal(5))}
    # A catalog that failed has to be sent completely the next time.
    synced.serve("/a", A, etag='"a1"')
    assert statuses(run()) == ["not_modified", "read"]


@pytest.mark.parametrize("status", [500, 404, 429, 304, 204])
def test_sync__both_refuse__failed_and_nothing_changes(server: CatalogServer, status: int) -> None:
    for path in ("/a", "/b"):
        server.fail(path, status)
    load_shipped_prices()
    before = price_table()
    log = run()
    assert (log.status, log.added, log.updated, log.removed) == ("failed", 0, 0, 0)
    assert [error["source"] for error in log.errors] == ["catalog_a", "catalog_b"]
    assert all(f"HTTP status {status}" in error["message"] for error in log.errors)
    assert price_table() == before


@pytest.mark.parametrize("content", [b"<html>", b"", b"[]", b"{}", b"null", b"[" * 100_000, b"\xff\xfe{", B, {"x": A}])
def test_sync__other_content__failed_and_nothing_changes(synced: CatalogServer, content: Any) -> None:
    synced.serve("/a", content)
    before = price_table()
    assert statuses(run()) == ["failed", "not_modified"]
    assert price_table() == before


def test_sync__nobody_listens__failed_and_no_address_in_the_error(settings: Settings) -> None:
    secret = "http://127.0.0.1:9/secret-path?token=secret-token"
    settings.PRICING_CATALOGS = {"catalog_a": secret, "catalog_b": ""}
    log = run()
    assert log.status == "failed"
    assert "127.0.0.1: not reachable" in log.errors[0]["message"] and "secret" not in str(log.errors)


@pytest.fixture
def alone(server: CatalogServer, settings: Settings, tmp_path: Path) -> CatalogServer:
    """Serves only the first catalog; the second one is a file, which has no time limit."""
    file = tmp_path / "catalog.json"
    file.write_text(json.dumps(B), encoding="utf-8")
    settings.PRICING_CATALOGS = {**settings.PRICING_CATALOGS, "catalog_b": str(file)}
    return server


def test_sync__slow_pieces__given_up(alone: CatalogServer, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PRICING_FETCH_SECONDS = 2 * TIMEOUT_SECONDS
    now = 0.0
    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: now))

    def dripping(request: Any) -> None:
        nonlocal now
        request.send_response(200)
        request.end_headers()
        # The loop runs until the client closes the connection.
        while not select.select([request.connection], [], [], 0.01)[0]:
            request.wfile.write(b" ")
            now += 1

    alone.pages["/a"] = dripping
    log = run()
    assert statuses(log) == ["failed", "read"]
    assert f"no answer within {2 * TIMEOUT_SECONDS:.0f} seconds" in log.errors[0]["message"]


def test_sync__no_answer_at_all__given_up(alone: CatalogServer, settings: Settings) -> None:
    settings.PRICING_FETCH_SECONDS = 0.3

    def silent(request: Any) -> None:
        # The handler waits until the client closes the connection.
        select.select([request.connection], [], [])

    alone.pages["/a"] = silent
    log = run()
    assert statuses(log) == ["failed", "read"]
    assert "no answer in time" in log.errors[0]["message"]


def test_sync__model_removed__its_price_ends_and_is_remembered(synced: CatalogServer) -> None:
    synced.serve("/a", {name: fields for name, fields in A.items() if name != "gpt-4.1"})
    log = run()
    assert counts(log) == ("success", 0, 0, 1, 5)
    assert ("openai", "gpt-4.1") not in price_table()
    period = PricePeriod.objects.get(model="gpt-4.1")
    assert period.valid_until is not None and period.input_cost_per_1m == 2


def test_sync__removed_from_the_first_catalog__price_of_the_second_applies(synced: CatalogServer) -> None:
    synced.serve("/a", {name: fields for name, fields in A.items() if name != "gpt-4o"})
    log = run()
    assert statuses(log) == ["read", "not_modified"]
    assert counts(log) == ("success", 0, 1, 0, 5)
    assert price_table()["openai", "gpt-4o"] == Price(Decimal(99), Decimal(99))
    first, second = PricePeriod.objects.filter(model="gpt-4o").order_by("valid_from", "pk")
    assert (first.source, second.source) == ("catalog_a", "catalog_b")
    assert first.valid_until == second.valid_from and second.valid_until is None


@pytest.mark.parametrize("price", [-1, 1e9, "free", True, [1], 1.0])
def test_sync__nonsense_for_one_model__refused_and_its_last_price_stays(synced: CatalogServer, price: Any) -> None:
    bad = {**model_a(1, 1), "output_cost_per_token": price}
    synced.serve("/a", {**A, "gpt-4.1": bad, "new": bad, "gpt-4o": model_a(2, 10, 1.25)})
    before = price_table()
    log = run()
    assert counts(log) == ("success", 0, 1, 0, 6)
    assert {error["model"] for error in log.errors} == {"openai/gpt-4.1", "openai/new"}
    assert all(error["message"].startswith("output_cost_per_token is") for error in log.errors)
    changed = Price(Decimal(2), Decimal(10), Decimal("1.25"))
    assert price_table() == {**before, ("openai", "gpt-4o"): changed}


def test_sync__many_errors__first_hundred_and_how_many_more(server: CatalogServer) -> None:
    bad = {f"bad-{number}": {**model_a(1, 1), "input_cost_per_token": -1} for number in range(150)}
    server.serve("/a", {**A, **bad})
    server.serve("/b", B)
    log = run()
    assert len(log.errors) == 101
    assert log.errors[-1]["message"] == "50 more are not listed."
    assert log.skipped == 150


def test_sync__manual_price__stays_through_everything(synced: CatalogServer) -> None:
    costs = {"input_cost_per_1m": Decimal(7), "output_cost_per_1m": Decimal(8)}
    set_price(project_id=None, provider="openai", model="gpt-4o", costs=costs, actor="user:op")
    synced.serve("/a", {**A, "gpt-4o": model_a(1, 1)})
    assert counts(run()) == ("success", 0, 0, 0, 6)
    synced.serve("/a", {"other": model_a(1, 1)})
    synced.serve("/b", catalog_b(openai={"another": (1, 1)}))
    run()
    assert price_table()["openai", "gpt-4o"] == Price(Decimal(7), Decimal(8))
    assert ModelPrice.objects.get(model="gpt-4o").source == "manual"


def test_sync__most_models_gone__refused_unless_from_elsewhere(synced: CatalogServer, settings: Settings) -> None:
    synced.serve("/a", {f"m-{number}": model_a(1, 1) for number in range(200)}, etag='"many"')
    run()
    synced.serve("/a", {f"m-{number}": model_a(2, 2) for number in range(99)})
    log = run()
    assert statuses(log) == ["failed", "not_modified"]
    assert log.errors[0]["message"] == "it has only 99 of 200 models left"
    assert CatalogState.objects.get(source="catalog_a").etag == '"many"'
    synced.serve("/mirror", {f"m-{number}": model_a(2, 2) for number in range(99)})
    settings.PRICING_CATALOGS = {"catalog_a": f"{synced.url}/mirror"}
    assert run().removed == 101


def test_sync__running__second_is_refused(server: CatalogServer) -> None:
    PriceSyncLog.objects.create(trigger="api", started_at=timezone.now())
    with pytest.raises(SyncRunningError):
        run()
    assert server.requests == []


def test_sync__one_that_died__is_closed_by_the_next(server: CatalogServer) -> None:
    dead = PriceSyncLog.objects.create(trigger="api", started_at=timezone.now() - sync.LEASE - timedelta(seconds=1))
    server.serve("/a", A)
    server.serve("/b", B)
    assert run().status == "success"
    dead.refresh_from_db()
    assert dead.status == "failed" and dead.finished_at is not None
    assert dead.errors[0]["message"] == "The run was broken off."


def test_sync__taken_for_dead_meanwhile__changes_nothing(
    server: CatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve("/a", A)
    server.serve("/b", B)

    def overtaken() -> Any:
        PriceSyncLog.objects.update(status="failed")
        return lock_table()

    monkeypatch.setattr(sync, "lock_table", overtaken)
    with pytest.raises(SyncBrokenOffError):
        run()
    assert price_table() == {}


def test_sync__unexpected_failure__closes_the_run(server: CatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.serve("/a", A)
    server.serve("/b", B)

    def fails(*_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(sync, "rebuild", fails)
    with pytest.raises(RuntimeError):
        run()
    log = PriceSyncLog.objects.get()
    assert (log.status, log.errors[0]["message"]) == ("failed", "The service failed unexpectedly.")
    assert price_table() == {}


def test_sync__changes__announced_once_and_only_then(
    synced: CatalogServer, django_capture_on_commit_callbacks: Any
) -> None:
    senders: list[object] = []

    def listen(**arguments: object) -> None:
        senders.append(arguments["sender"])

    prices_changed.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            run()
        assert senders == []
        synced.serve("/a", {"gpt-4o": model_a(1, 1)})
        with django_capture_on_commit_callbacks(execute=True):
            run()
        assert senders == [ModelPrice]
    finally:
        prices_changed.disconnect(listen)


def test_load_shipped_prices__after_a_sync__what_was_synced_stays(synced: CatalogServer) -> None:
    before = price_table()
    assert load_shipped_prices().updated == 0
    assert price_table() == before
