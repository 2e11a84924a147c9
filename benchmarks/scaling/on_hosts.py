from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import psutil
import psycopg
from clickhouse_driver.errors import Error as ClickHouseError
from redis import RedisError

from benchmarks import report
from benchmarks.scaling import check, figures, measure
from benchmarks.scaling.figures import Measured, Records, Stores
from benchmarks.scaling.inputs import Mix
from benchmarks.scaling.model import Model
from benchmarks.scaling.observation import Observed, observe
from benchmarks.targets.base import ROOT, UnavailableError, run_step

RESULTS = ROOT / "benchmarks" / "results" / "scaling.md"
# What a server or a process that does not start, does not answer or is gone comes to.
FAILURES = (
    RuntimeError,
    OSError,
    ValueError,
    UnavailableError,
    psutil.Error,
    psycopg.Error,
    RedisError,
    ClickHouseError,
)
_HOSTS = 3


@dataclass(frozen=True, slots=True)
class Measure:
    section: str
    take: Callable[[Observed, Measured, str], Stores | Records]


_MEASURES = {
    "stores": Measure("stores", measure.stores),
    "limits": Measure("stores", measure.limits),
    "batches": Measure("records", measure.batches),
}


@dataclass(frozen=True, slots=True)
class Found:
    measured: Measured
    text: str
    check: dict[str, str]


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("hosts on this machine, which take some five minutes")
    group.add_argument("--hosts", type=int, help="run one host and so many, and print the model beside them")
    group.add_argument(
        "--measure",
        choices=tuple(_MEASURES),
        action="append",
        default=[],
        help="what hosts ask of the stores, or what limits or batches cost; repeatable",
    )
    group.add_argument("--write-measured", action="store_true", help="put what was measured into measured.toml")
    group.add_argument("--load", type=float, default=100.0, help="requests a second on the hosts (100)")
    group.add_argument("--watch", type=float, default=60.0, help="seconds to watch idle hosts (60)")


def asked(options: argparse.Namespace) -> bool:
    return options.hosts is not None or bool(options.measure)


def fault(options: argparse.Namespace) -> str:
    if options.hosts is not None and options.hosts < 2:
        return f"hosts has to be at least 2, since one host runs before, not {options.hosts}"
    if not (0 < options.load <= 1000 and 0 < options.watch <= 3600):
        return "load has to be above 0 and at most 1,000 requests a second, watch at most 3,600 seconds"
    if options.write_measured and not options.measure:
        return "write-measured has nothing to write without --measure"
    return ""


def run(options: argparse.Namespace) -> Found:
    # SIGTERM acts like an interrupt: started processes are stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    revision = run_step(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])
    busy, _, _ = os.getloadavg()
    observed = observe(options.hosts or _HOSTS, options.load, options.watch, Mix())
    return found(observed, options, f"{revision}, load of the machine before {busy:.1f}, {report.machine()}")


def found(observed: Observed, options: argparse.Namespace, where: str) -> Found:
    measured = figures.measured()
    texts = [check.idle_table(observed)]
    for name in dict.fromkeys(options.measure):
        section = _MEASURES[name].section
        part = _MEASURES[name].take(observed, measured, where.rstrip("."))
        texts.append(measure.table(getattr(measured, section), part))
        measured = msgspec.structs.replace(measured, **{section: part})
    # The page's table is by the figures of its file.
    model = Model(measured if options.write_measured else figures.measured())
    tables = {"check": check.table(model, observed, where)} if options.hosts else {}
    return Found(measured, "\n\n".join([_head(options, observed, where), *texts, *tables.values()]), tables)


def write(made: Found, options: argparse.Namespace) -> None:
    for section in {_MEASURES[name].section for name in options.measure} if options.write_measured else ():
        figures.write(getattr(made.measured, section))
    if options.write_docs:
        RESULTS.write_text(f"{made.text}\n", encoding="utf-8")


def _head(options: argparse.Namespace, observed: Observed, where: str) -> str:
    words = [f"--measure {name}" for name in options.measure] + [f"--hosts {observed.hosts}"]
    return (
        "# Hosts on one machine, and the model of docs/scaling.md\n\n"
        f"`python -m benchmarks.scaling {' '.join(words)} --load {options.load:g} --watch {options.watch:g}`\n\n{where}"
    )
