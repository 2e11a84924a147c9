"""The definitions of each mode: one server's are the files' own, others' are golden texts that ClickHouse parses."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.clickhouse.topology.mode import Kind, Mode, parse
from analytics.clickhouse.topology.routing import Step, steps
from tests.analytics.topology import golden
from tests.tables.cases import tabled

_ENGINE = re.compile(r"\bENGINE = (\w+)")


@dataclass
class _Formatted:
    text: str


def test_definitions__one_server__are_those_of_the_files() -> None:
    for sql in golden.written():
        assert steps(sql, parse("single"), "llm", fresh=("requests",)) == [Step(sql)]


@pytest.mark.parametrize("mode", golden.MODES)
def test_definitions__several_servers__are_the_golden_ones(mode: str) -> None:
    expected = golden.path(mode).read_text(encoding="utf-8")

    assert golden.describe(mode) == expected, "run `python -m tests.analytics.topology.golden`, and read what changed"


@pytest.mark.parametrize("mode", golden.MODES)
def test_definitions__several_servers__are_parsed_by_clickhouse(clickhouse: None, mode: str) -> None:
    found = [step for sql in golden.written() for step in golden.run(sql, mode)]
    sent = dict.fromkeys(text for step in found for text in (step.sql, *step.before))

    for text in sent:
        [formatted] = client.query(
            "SELECT formatQuery({sql:String}) AS text", {"sql": text}, row=_Formatted, name="parse"
        )
        assert ("ON CLUSTER" in formatted.text) == ("ON CLUSTER" in text)


@pytest.mark.parametrize("mode", golden.MODES)
def test_definitions__several_servers__leave_no_table_on_one_server(mode: str) -> None:
    engines = {
        engine
        for sql in (*golden.written(), "CREATE TABLE traffic_texts_1 (id UInt32) ENGINE = Memory")
        for step in golden.run(sql, mode)
        for engine in _ENGINE.findall(step.sql)
    }

    assert {"ReplicatedMergeTree", "ReplicatedAggregatingMergeTree", "ReplicatedReplacingMergeTree"} < engines
    kept = {engine for engine in engines if not engine.startswith("Replicated")}
    assert kept == {"Null", "Distributed"} if mode.startswith("cluster") else kept == {"Null"}


@pytest.mark.parametrize("mode", golden.MODES)
def test_definitions__run_again__have_the_same_end(mode: str) -> None:
    """A migration that breaks off is run again, on servers of which some have done a statement and some have not."""
    repeatable = re.compile(
        r"CREATE \w+(?: \w+)? IF NOT EXISTS|CREATE OR REPLACE|DROP \w+ IF EXISTS|RENAME TABLE IF EXISTS"
        r"|ALTER TABLE \w+(?: ON CLUSTER \w+)?\s+"
        r"(?:ADD (?:COLUMN|INDEX) IF NOT EXISTS|DROP INDEX IF EXISTS|MODIFY|MATERIALIZE INDEX)"
        r"|INSERT INTO|TRUNCATE|DELETE|OPTIMIZE|EXCHANGE"
    )
    for sql in golden.written():
        for step in golden.run(sql, mode):
            is_lease = step.sql.startswith("CREATE TABLE migration_lease_")
            assert is_lease or repeatable.match(step.sql), step.sql


def test_fresh__replicated__server_catches_up_before_it_reads() -> None:
    sql = "SELECT count() FROM requests"

    [replicated] = steps(sql, parse("replicated"), "llm", fresh=("requests",))
    [of_cluster] = steps(sql, parse("cluster:prod"), "llm", fresh=("requests",))

    assert replicated == Step(sql, before=("SYSTEM SYNC REPLICA llm.requests LIGHTWEIGHT",))
    assert of_cluster.before == ("SYSTEM SYNC REPLICA ON CLUSTER prod llm.requests LIGHTWEIGHT",)
    assert of_cluster.suffix == "_all"
    assert of_cluster.settings["distributed_product_mode"] == "global"


def test_insert__cluster__returns_when_the_shards_have_the_rows() -> None:
    [step] = steps("INSERT INTO ingest (project_id) VALUES", parse("cluster:prod"), "llm")

    assert (step.suffix, step.settings["distributed_foreground_insert"]) == ("_all", 1)


@tabled
def test_system_tables__are_asked_of_all_servers(text: str, expected: str) -> None:
    assert parse(text).system("processes", "llm") == expected


def test_mode__single_by_default(settings: Settings) -> None:
    assert parse(settings.CLICKHOUSE_MODE) == Mode(Kind.SINGLE)


@pytest.mark.parametrize("text", ["", "cluster", "cluster:", "cluster:a b", "replica", "cluster:x'); DROP"])
def test_mode__unknown__is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no mode"):
        parse(text)
