"""Prometheus' text format for one host: the figures of all its processes together, from their latest reports.

A scrape queries no store; unknown figures are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from analytics.totals.collector import totals_metrics
from analytics.totals.figures import Totals
from analytics.totals.file import read_totals
from config.monitor.hosts import known_subject
from config.monitor.state import HostState, read_host
from config.monitor.subjects import SUBJECTS, children_subject, store_metrics
from core.processes.monitoring import Subject, gauge
from gateway.worker.monitoring import worker_metrics, worker_states

PROJECT = "project"

_KNOWN: Sequence[Subject] = (*SUBJECTS, children_subject(dict), known_subject())


class HostCollector(Collector):
    def __init__(self, project: str | None = None) -> None:
        self._project = project

    def collect(self) -> Iterable[Metric]:
        for family in all_metrics():
            if self._project is None:
                yield family
            elif any(PROJECT in sample.labels for sample in family.samples):
                family.samples = [one for one in family.samples if one.labels.get(PROJECT) == self._project]
                yield family


def render(project: str | None = None) -> bytes:
    """Takes some ten milliseconds of CPU time."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HostCollector(project))
    return generate_latest(registry)


def all_metrics() -> Iterator[Metric]:
    yield gauge("build_info", "1; which version runs.", ["version"], [((settings.SPECTACULAR_SETTINGS["VERSION"],), 1)])
    yield from totals_metrics(read_totals(settings.SPOOL_DIR) or Totals(since=0))
    yield from worker_metrics(worker_states())
    host = read_host()
    up = "Whether this host's monitor runs; without it what follows is left out."
    yield gauge("monitor_up", up, (), [((), host is not None)])
    if host is not None:
        yield from _host_metrics(host)


def _host_metrics(host: HostState) -> Iterator[Metric]:
    yield gauge("start_time_seconds", "When `serve` was started, in Unix time.", (), [((), host.started_at)])
    yield from store_metrics(host.stores)
    for subject in _KNOWN:
        if subject.name in host.found:
            yield from subject.metrics(host.found[subject.name])
    waited = max(time.time() - host.at, 0.0)
    yield gauge(
        "observation_age_seconds",
        "How old the monitor's latest look at a subject is.",
        ["subject"],
        [((name,), age + waited) for name, age in host.ages.items()],
    )
    yield gauge("alarms", "Alerts that were sent to operators and have not ended.", (), [((), len(host.alarms))])
