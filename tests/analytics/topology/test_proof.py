"""`manage.py prove_analytics` passes on one engine, and fails with the reason on servers that break a promise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import StringIO
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.clickhouse.address import at
from analytics.proof.promises import PROMISES
from analytics.proof.run import reason_of
from analytics.proof.servers import Server, scratch_database
from tests.analytics.engine_process import EngineProcess, running_engine
from tests.analytics.topology.engine import CLUSTER

pytestmark = pytest.mark.django_db

_ACCESS_DENIED = 497
_BY_NAME = {promise.name: promise for promise in PROMISES}
# A server's way to break a promise: from a statement, its settings, and whether the second of two servers is asked, to
# the statement and the settings that it goes by.
Fault = Callable[[str, dict[str, Any], bool], tuple[str, dict[str, Any]]]


def _rewritten(pattern: str, by: str, *, by_the_second: bool | None = None) -> Fault:
    """Returns a fault by which a server, or only the first or the second, takes a statement for another."""

    def fault(sql: str, settings: dict[str, Any], second: bool) -> tuple[str, dict[str, Any]]:
        concerned = by_the_second is None or by_the_second == second
        return (re.sub(pattern, by, sql) if concerned else sql), settings

    return fault


def _forgets_tokens(sql: str, settings: dict[str, Any], second: bool) -> tuple[str, dict[str, Any]]:
    token = settings.get("insert_deduplication_token", "")
    return sql, {**settings, "insert_deduplication_token": f"{token}-of-the-second"} if second and token else settings


FAULTS: Sequence[tuple[str, Fault, str]] = (
    (
        "definitions",
        _rewritten(r"groupArray\(\(c\.name, .*?\)\)", r"arrayPopBack(\g<0>)", by_the_second=True),
        r"second has anonymised \(Null, \d+ columns\), first anonymised \(Null, \d+ columns\)",
    ),
    (
        "lease",
        _rewritten("CREATE TABLE migration_lease", "CREATE TABLE IF NOT EXISTS migration_lease"),
        "2 of 2 that asked for one lease at once got it",
    ),
    (
        "lease",
        _rewritten("SELECT name, comment FROM system.tables WHERE", r"\g<0> 0 AND", by_the_second=True),
        r"second does not see lease \d+, which was taken",
    ),
    ("tokens", _forgets_tokens, "a batch of 200 that was sent to each server under one token is 400 rows on first"),
    (
        "tokens",
        _rewritten(r"cityHash64\(request_id, ts, model, recorded_at\)", "1", by_the_second=True),
        "the rows of one batch are not the same on first and second",
    ),
    (
        "tokens",
        _rewritten("FROM payloads WHERE", r"\g<0> 0 AND", by_the_second=True),
        "second has texts of 0 of 200 requests",
    ),
    (
        "reads",
        _rewritten("FROM requests WHERE", r"\g<0> 0 AND", by_the_second=True),
        "second reads 0 of 200 rows right after first has stored the last of them",
    ),
    (
        "running",
        _rewritten("FROM system.processes WHERE", r"\g<0> 0 AND", by_the_second=True),
        "second does not see an insert that runs on first",
    ),
    (
        "running",
        _rewritten(r"max\(elapsed\)", "-60.", by_the_second=True),
        r"second took rows for complete up to .*, and one of .* came afterwards",
    ),
    (
        "gate",
        _rewritten("^RENAME TABLE IF EXISTS ingest TO ingest_closed", "SELECT 1", by_the_second=False),
        "second takes rows after first has taken `ingest` away",
    ),
    (
        "deletions",
        _rewritten(r"^DELETE FROM requests WHERE .*", "SELECT 1", by_the_second=False),
        "first still shows 200 of 200 rows that first has deleted",
    ),
    (
        "deletions",
        _rewritten(r"^(DELETE FROM requests WHERE) .*", r"\1 1", by_the_second=False),
        "first shows 0 of 200 rows of another project after a deletion",
    ),
    (
        "figures",
        _rewritten("FROM requests_daily WHERE", r"\g<0> 0 AND", by_the_second=True),
        "figures differ from their requests on second: requests_daily",
    ),
    (
        "figures",
        _rewritten(r"\[toFloat64\(", "[1 + toFloat64(", by_the_second=True),
        "figures total are not the same on second and first",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with running_engine(tmp_path_factory.mktemp("proof") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def servers(engine: EngineProcess) -> Iterator[list[Server]]:
    """One engine under two names, which are two servers to the proof, with a scratch database that has the tables."""
    parts = urlsplit(engine.url)
    other = urlunsplit(parts._replace(netloc=parts.netloc.replace("127.0.0.1", "localhost")))
    with ExitStack() as stack:
        # Other tests of this module have addresses of their own, so that this one must not stay theirs.
        with at(engine.url):
            both = [Server("first", engine.url), Server("second", other)]
            scratch = stack.enter_context(scratch_database(both))
            assert reason_of(_BY_NAME["definitions"], scratch) == ""
        yield scratch


@pytest.fixture
def own_address(settings: Settings, engine: EngineProcess) -> Iterator[None]:
    usual, settings.CLICKHOUSE_URL = settings.CLICKHOUSE_URL, engine.url
    yield
    client.close()
    settings.CLICKHOUSE_URL = usual


def _prove(*servers: str) -> str:
    output = StringIO()
    call_command("prove_analytics", *(f"--server={one}" for one in servers), stdout=output)
    return output.getvalue()


def _databases() -> set[str]:
    return {name for (name,) in client.execute("SELECT name FROM system.databases")}


def _break(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """Has the engine break a promise, at the place where its statements leave."""
    execute = Client.execute

    def faulty(self: Client, query: str, *args: Any, settings: Any = None, **options: Any) -> Any:
        second = self.connection.hosts[0][0] == "localhost"
        text, chosen = fault(query, dict(settings or {}), second)
        if text == "SELECT 1" != query:
            return []
        return execute(self, text, *args, settings=chosen, **options)

    monkeypatch.setattr(Client, "execute", faulty)


def test_prove__one_engine__keeps_every_promise_and_leaves_nothing(own_address: None) -> None:
    before = _databases()

    output = _prove()

    assert output.count(": kept") == len(PROMISES)
    assert f"All {len(PROMISES)} promises of CLICKHOUSE_MODE=single are kept." in output
    assert _databases() == before


@pytest.mark.parametrize(
    ("promise", "fault", "reason"), FAULTS, ids=[f"{one[0]}-{number}" for number, one in enumerate(FAULTS)]
)
def test_promise__servers_that_break_it__says_how(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch, promise: str, fault: Fault, reason: str
) -> None:
    _break(monkeypatch, fault)

    assert re.fullmatch(reason, reason_of(_BY_NAME[promise], servers))


def test_prove__a_broken_promise__fails_with_the_reason_and_leaves_nothing(
    own_address: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.proof.run.PROMISES", [_BY_NAME["definitions"], _BY_NAME["lease"]])
    before = _databases()
    _break(monkeypatch, _rewritten("CREATE TABLE migration_lease", "CREATE TABLE IF NOT EXISTS migration_lease"))

    with pytest.raises(CommandError, match="1 of 8 promises of CLICKHOUSE_MODE=single are broken"):
        _prove()

    assert _databases() == before


def test_prove__user_without_the_right__names_it_and_changes_nothing(
    own_address: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denies(sql: str, settings: dict[str, Any], second: bool) -> tuple[str, dict[str, Any]]:
        if sql.startswith("CREATE DATABASE"):
            raise ServerException(
                "it's necessary to have the grant CREATE DATABASE ON llm.*\nStack trace:", _ACCESS_DENIED
            )
        return sql, settings

    before = _databases()
    _break(monkeypatch, denies)

    with pytest.raises(CommandError, match=r"the grant CREATE DATABASE ON llm\.\* Nothing was changed\.$"):
        _prove()

    assert _databases() == before


def test_prove__several_servers_of_which_one_is_found__asks_for_their_names(
    own_address: None, engine: EngineProcess, settings: Settings
) -> None:
    settings.CLICKHOUSE_MODE = "replicated"

    with pytest.raises(CommandError, match="Found 1 of the store's servers, and a proof needs two: name them"):
        _prove(f"127.0.0.1:{engine.port}")
    with pytest.raises(CommandError, match=r"--server ch-1: expected HOST:PORT"):
        _prove("ch-1")


@pytest.mark.parametrize("mode", [f"cluster:{CLUSTER}"])
def test_prove__cluster_without_keeper__keeps_all_that_does_not_need_it(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    """The tables of this engine are on one server alone, which the proof says; the rest of the mode runs."""
    folder = tmp_path_factory.mktemp("cluster") / "data"
    with running_engine(folder, program=("-m", "tests.analytics.topology.engine")) as engine:
        settings.CLICKHOUSE_URL, settings.CLICKHOUSE_MODE = engine.url, mode
        output = StringIO()
        with pytest.raises(CommandError, match=f"1 of {len(PROMISES)} promises of CLICKHOUSE_MODE={mode} are broken"):
            call_command(
                "prove_analytics",
                f"--server=127.0.0.1:{engine.port}",
                f"--server=localhost:{engine.port}",
                stdout=output,
            )
        client.close()

    first, *others = [line for line in output.getvalue().splitlines() if re.match(r"\d/\d ", line)]
    assert re.search(r"BROKEN: table \w+ is on 127\.0\.0\.1:\d+ alone: its engine is \w+MergeTree", first)
    assert len(others) == len(PROMISES) - 1
    assert all(line.endswith(": kept") for line in others)
