from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from prometheus_client.core import Metric

from analytics.shipper.spool_status import read_status
from core.fleet import hosts, lease
from core.processes.monitoring import IN_DATABASE, Alarm, Found, Subject, gauge
from gateway.worker.monitoring import worker_states

logger = logging.getLogger("config.hosts")

Children = Callable[[], Mapping[str, tuple[bool, int]]]

REPORT_SECONDS = 10.0
# After an outage of the database all hosts look silent until they have reported again, and nobody schedules until one
# has asked for the lease. The first to schedule in a new installation is the last that its host starts.
_SETTLING_SECONDS = 20.0
_FIRST_BEAT_SECONDS = 120.0
_SUBJECT_CHARACTERS = 100
_NAME = "hosts"


class Presence:
    def __init__(self, children: Children) -> None:
        self._children = children
        self._instance = secrets.token_hex(8)
        self._started_at = datetime.now(UTC)
        self._has_reported = False
        # Without it a report that is under way could come after the last one.
        self._lock = threading.Lock()
        self._has_left = False

    def subject(self) -> Subject:
        return Subject(_NAME, self._ask, REPORT_SECONDS, _metrics, _alarms, IN_DATABASE)

    def leave(self) -> None:
        if not self._has_reported:
            return
        try:
            with self._lock:
                self._has_left = True
                self._report(leaves=True)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("host.leaves_unsaid error=%s", type(error).__name__)
        finally:
            connection.close()

    def _ask(self) -> dict[str, Any]:
        before = {host.name: host for host in hosts.seen_hosts()}
        with self._lock:
            if not self._has_left:
                self._report()
        held = lease.state(lease.BEAT)
        own, name = before.get(settings.HOST_NAME), settings.HOST_NAME
        # Whoever has overwritten this process's last report runs beside it.
        is_shared = self._has_reported and own is not None and own.instance != self._instance
        self._has_reported = True
        others = [host for host in before.values() if host.name != name]
        return {
            "hosts": [[name, "serving", "", 0], *(_shown(host) for host in others)],
            "share": _share(others),
            "name_shared": name if is_shared else "",
            "beat_seconds": None if held is None else held[1],
        }

    def _report(self, *, leaves: bool = False) -> None:
        states = worker_states()
        content = {
            "web_workers": settings.WEB_WORKERS,
            "ready": sum(all(state.ready.values()) for state in states),
            "in_flight": sum(state.in_flight for state in states),
            "unshipped_bytes": _unshipped_bytes(),
            "children_down": sorted(role for role, (is_up, _) in self._children().items() if not is_up),
        }
        hosts.report(
            settings.HOST_NAME,
            instance=self._instance,
            version=settings.SPECTACULAR_SETTINGS["VERSION"],
            started_at=self._started_at,
            content=content,
            leaves=leaves,
        )


def _unshipped_bytes() -> int | None:
    try:
        return read_status(settings.SPOOL_DIR).unshipped_bytes
    except OSError:
        # A host whose disk is gone still says that it lives; the subject `spool` says the rest.
        return None


def _share(others: Iterable[hosts.SeenHost]) -> dict[str, Any]:
    """What this host's workers go by while they cannot count together: the `workers` of all serving hosts, those
    `before` this host by name, and the `pids` of its own."""
    counts = {host.name: host.report.get("web_workers", 1) for host in others if host.state == "serving"}
    before = sum(count for name, count in counts.items() if name < settings.HOST_NAME)
    workers = sum(counts.values()) + settings.WEB_WORKERS
    return {"workers": workers, "before": before, "pids": sorted(state.pid for state in worker_states())}


def known_subject() -> Subject:
    return Subject(_NAME, dict, REPORT_SECONDS, _metrics, _alarms)


def _shown(host: hosts.SeenHost) -> list[Any]:
    return [host.name, host.state, f"{host.seen_at:%Y-%m-%d %H:%M:%S}", host.report.get("unshipped_bytes")]


def _metrics(found: Found) -> Iterable[Metric]:
    states = [state for _, state, _, _ in found["hosts"]]
    yield gauge(
        "hosts",
        "Hosts of the installation, by what is known of them.",
        ["state"],
        [((state,), states.count(state)) for state in hosts.STATES],
    )
    seconds = found["beat_seconds"]
    yield gauge(
        "beat_seconds",
        "How long ago whoever schedules said so; left out before the first time.",
        (),
        [] if seconds is None else [((), seconds)],
    )


def _alarms(found: Found) -> Iterable[Alarm]:
    for name, state, seen_at, unshipped in found["hosts"]:
        if state == "silent":
            held = "an unknown number of" if unshipped is None else unshipped
            text = (
                f"Host {name} was last heard of at {seen_at} UTC. Its spool held {held} bytes that the request log did"
                " not have."
            )
            yield Alarm("host_silent", text, name[:_SUBJECT_CHARACTERS], after=_SETTLING_SECONDS, is_shared=True)
    seconds = found["beat_seconds"]
    if seconds is None or seconds > lease.LEASE_SECONDS + REPORT_SECONDS:
        text = "No host schedules background tasks: verdicts of rollouts, alerts and deletions wait."
        yield Alarm("beat_stale", text, after=_SETTLING_SECONDS if seconds else _FIRST_BEAT_SECONDS, is_shared=True)
    if found["name_shared"]:
        text = f"Two hosts call themselves {found['name_shared']}: give each a HOST_NAME of its own."
        yield Alarm("host_name_shared", text, found["name_shared"][:_SUBJECT_CHARACTERS], is_shared=True)
