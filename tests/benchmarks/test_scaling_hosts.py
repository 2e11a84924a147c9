from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from benchmarks.client import Request
from benchmarks.scaling import check, figures, measure, on_hosts, traffic
from benchmarks.scaling.__main__ import PAGE, main
from benchmarks.scaling.inputs import Mix
from benchmarks.scaling.model import Model
from benchmarks.scaling.observation import Observed
from benchmarks.scaling.readings import Count, Level, Part, Reading, Use, use
from benchmarks.targets.base import Endpoint
from tests.live.service import ROOT, minimal_environment

MEASURED = figures.measured()
ENDPOINTS = [
    Endpoint(port, "/v1/chat/completions", "mock", {}, {"prompt_config": "bench", "user": "user-1"})
    for port in (1001, 1002, 1003)
]


def as_the_model_says(hosts: int, rate: float, measured: figures.Measured = MEASURED) -> Use:
    model, stores = Model(measured), measured.stores
    return Use(
        hosts,
        rate,
        {
            Part.WEB: rate * model.web_us,
            Part.SHIPPERS: rate * measured.records.shipper_us,
            Part.OTHERS: 0.0,
            Part.CLICKHOUSE: rate * model.row_us + (model.batches_us(hosts) if rate else 0.0),
            Part.REDIS: model.redis_us(rate, hosts) if rate else hosts * stores.redis_host_us,
            Part.POSTGRESQL: hosts * stores.postgresql_us,
        },
        {
            Count.TRANSACTIONS: hosts * stores.postgresql_transactions,
            Count.COMMANDS: hosts * stores.redis_host_commands,
            Count.REDIS_BYTES: rate * stores.redis_limits_bytes,
            Count.BATCHES: hosts * stores.batches if rate else 0.0,
        },
        {Level.POSTGRESQL: hosts * stores.postgresql_connections, Level.REDIS: hosts * stores.redis_connections},
    )


def observed(hosts: int = 3, rate: float = 60.0, measured: figures.Measured = MEASURED) -> Observed:
    idle = as_the_model_says(1, 0, measured), as_the_model_says(hosts, 0, measured)
    loaded = as_the_model_says(1, rate, measured), as_the_model_says(hosts, rate, measured)
    return Observed(idle, loaded, measured.stores.redis_scope_bytes)


def reading(at: float, figure: float, roles: dict[int, str]) -> Reading:
    return Reading(at, roles, *(dict.fromkeys(kind, figure) for kind in (Part, Count, Level)))  # type: ignore[arg-type]


def test_use__two_readings__is_what_came_between_them_a_second_and_the_most_connections() -> None:
    found = use(3, 60.0, (reading(10.0, 5.0, {1: "web-1"}), reading(14.0, 25.0, {1: "web-1"})))

    assert set(found.cpu.values()) == set(found.counts.values()) == {5.0}
    assert set(found.levels.values()) == {25.0}


def test_use__process_that_was_replaced__is_named() -> None:
    before, after = reading(10.0, 5.0, {1: "web-1", 2: "shipper"}), reading(14.0, 25.0, {1: "web-1", 3: "shipper"})

    with pytest.raises(RuntimeError, match="processes of the hosts ended or started: shipper"):
        use(3, 60.0, (before, after))


def test_measure__hosts_that_need_what_a_file_says__finds_what_it_says() -> None:
    other = msgspec.structs.replace(
        MEASURED.stores,
        postgresql_connections=5.0, postgresql_us=700.0, postgresql_transactions=4.5, redis_connections=9.0,
        redis_host_commands=11.0, redis_host_us=650.0, redis_limits_us=77.0, redis_limits_bytes=900.0,
        redis_scope_bytes=123.0, batches=0.4,
    )  # fmt: skip
    seen = observed(measured=msgspec.structs.replace(MEASURED, stores=other))

    found = measure.stores(seen, MEASURED, "here")
    found = measure.limits(seen, msgspec.structs.replace(MEASURED, stores=found), "here")

    numbers = {name: getattr(found, name) for name in figures.described(figures.Stores)}
    assert numbers == pytest.approx({name: getattr(other, name) for name in numbers})


def test_measure__batches__cost_what_further_hosts_add_for_the_same_requests() -> None:
    dear = msgspec.structs.replace(MEASURED.records, insert_us=80_000.0)

    found = measure.batches(observed(measured=msgspec.structs.replace(MEASURED, records=dear)), MEASURED, "here")

    assert found.insert_us == pytest.approx(80_000)
    assert found.row_us == MEASURED.records.row_us


def test_measure__no_more_batches__is_refused() -> None:
    seen = observed()
    seen.loaded[1].counts[Count.BATCHES] = seen.loaded[0].counts[Count.BATCHES]

    with pytest.raises(RuntimeError, match="3 hosts sent no more batches than one"):
        measure.batches(seen, MEASURED, "here")


def test_measure__again__source_names_the_last_time_alone() -> None:
    first = measure.stores(observed(), MEASURED, "yesterday")

    second = measure.stores(observed(), msgspec.structs.replace(MEASURED, stores=first), "today")

    assert second.source == first.source.replace("yesterday", "today")
    assert "estimated" not in second.source.partition("hosts and budgets: ")[2]


def test_check__hosts_that_need_what_the_model_says__are_once_what_it_says() -> None:
    rows = check.table(Model(MEASURED), observed(), "here").splitlines()[2:]

    compared = [row for row in rows if row.startswith("| ") and Part.OTHERS not in row]
    assert len(compared) == len(Part) - 1 + 3
    assert all([cell.strip() for cell in row.split("|")][4] == "1.00" for row in compared)
    assert all([cell.strip() for cell in row.split("|")][7] == "1.00" for row in compared)


def test_plans__of_three_hosts__share_the_rate_half_streams_half_with_a_prompt() -> None:
    made = traffic.plans(ENDPOINTS, Mix(), 60.0, 10.0)

    assert sum(plan.rate for plan in made) == pytest.approx(60)
    kinds = Counter((plan.port, plan.stream_events, "prompt_config" in plan.fields) for plan in made)
    assert kinds == Counter(
        (endpoint.port, events, prompt) for endpoint in ENDPOINTS for events in (0, 100) for prompt in (False, True)
    )
    # Every request has an end user, whose limits are counted.
    assert all(plan.fields["user"] == "user-1" for plan in made)
    # Streams of two seconds find a connection.
    assert all(plan.connections >= 2 * plan.rate for plan in made if plan.stream_events)
    assert len({plan.warmup for plan in made}) == 1


def test_requests__of_a_plan__have_its_size_and_other_words_each_time() -> None:
    plan = traffic.plans(ENDPOINTS, Mix(), 60.0, 10.0)[0]

    made = [request.data.partition(b"\r\n\r\n") for request in islice(traffic.requests(plan, Request(b"")), 5)]

    assert all(f"content-length: {len(body)}\r\n".encode() in head + b"\r\n" for head, _, body in made)
    texts = {json.loads(body)["messages"][-1]["content"] for _, _, body in made}
    assert len(texts) == len(made)
    assert {len(body) for _, _, body in made} == {4096}


def test_command__host_that_does_not_start__says_so_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def observe(*_: object) -> Observed:
        raise RuntimeError("not ready after 120 s: no space left")

    monkeypatch.setattr(on_hosts, "observe", observe)
    kept = PAGE.read_bytes(), figures.MEASURED.read_bytes()

    assert main(["--hosts", "3", "--measure", "stores", "--write-measured", "--write-docs"]) == 1

    assert "the hosts did not run to the end: not ready after 120 s: no space left" in capsys.readouterr().err
    assert (PAGE.read_bytes(), figures.MEASURED.read_bytes()) == kept


@pytest.mark.night
@pytest.mark.live
def test_command__short_run_of_two_hosts__compares_every_part(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.scaling", "--measure", "stores", "--hosts", "2"]
    # The environment lacks the addresses of the suite's services, so that the benchmark starts its own.
    done = subprocess.run(
        [*command, "--load", "8", "--watch", "6"],
        cwd=ROOT, env=minimal_environment(tmp_path / "unused"), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    for part in Part:
        assert f"| {part}, µs | " in done.stdout
        assert f"| {part}, µs a request | " in done.stdout
    assert "| `postgresql_connections` | of a host | " in done.stdout
    assert "| `redis_scope_bytes` | " in done.stdout
