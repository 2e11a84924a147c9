from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.db.models import F
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from config.monitor.hosts import Presence
from core.fleet import hosts, lease
from core.fleet.tables import Host, Lease

# The monitor closes connections, which would end the transaction of a test.
pytestmark = pytest.mark.django_db(transaction=True)


class Hosts:
    """Hosts in one process: the caller is the host that HOST_NAME names."""

    def __init__(self, settings: Settings, spool: Path) -> None:
        self._settings = settings
        settings.SPOOL_DIR = spool
        lease.take(lease.BEAT, "test")

    def start(self, name: str) -> Presence:
        presence = Presence(lambda: {"web-1": (True, 0), "shipper": (False, 3)})
        self.report(name, presence)
        return presence

    def report(self, name: str, presence: Presence) -> None:
        self._settings.HOST_NAME = name
        presence.subject().ask()

    def share(self, name: str, presence: Presence) -> tuple[int, int]:
        self._settings.HOST_NAME = name
        share = presence.subject().ask()["share"]
        return share["workers"], share["before"]

    def alarms(self, name: str, presence: Presence) -> dict[str, str]:
        self._settings.HOST_NAME = name
        subject = presence.subject()
        raised = list(subject.alarms(subject.ask()))
        assert all(alarm.is_shared for alarm in raised)
        return {f"{alarm.kind} {alarm.subject}".strip(): alarm.text for alarm in raised}


@pytest.fixture
def installation(settings: Settings, tmp_path: Path) -> Hosts:
    return Hosts(settings, tmp_path)


def let_pass(seconds: float, *, of: str) -> None:
    Host.objects.filter(name=of).update(seen_at=F("seen_at") - timedelta(seconds=seconds))


def test_report__two_hosts__each_knows_of_both(installation: Hosts) -> None:
    installation.start("host-a")
    installation.start("host-b")

    assert [(host.name, host.state) for host in hosts.seen_hosts()] == [("host-a", "serving"), ("host-b", "serving")]
    assert hosts.seen_hosts()[0].report["children_down"] == ["shipper"]


def test_alarms__host_says_nothing_more__another_names_it_until_it_is_back(installation: Hosts) -> None:
    lost, other = installation.start("host-a"), installation.start("host-b")
    assert installation.alarms("host-b", other) == {}
    let_pass(60, of="host-a")

    raised = installation.alarms("host-b", other)
    assert raised.keys() == {"host_silent host-a"}
    assert "Its spool held 0 bytes" in raised["host_silent host-a"]

    installation.report("host-a", lost)
    assert installation.alarms("host-b", other) == {}


def test_report__spool_s_disk_is_gone__heard_of_all_the_same(installation: Hosts, settings: Settings) -> None:
    settings.SPOOL_DIR = Path("/nowhere/spool")
    installation.start("host-a")
    other = installation.start("host-b")
    let_pass(60, of="host-a")

    assert "an unknown number of bytes" in installation.alarms("host-b", other)["host_silent host-a"]


def test_report__hosts_serve_fall_silent_and_leave__workers_know_the_share_of_each(
    installation: Hosts, settings: Settings
) -> None:
    settings.WEB_WORKERS = 3
    installation.start("host-a")
    leaving, own = installation.start("host-b"), installation.start("host-c")
    assert installation.share("host-c", own) == (9, 6)
    let_pass(60, of="host-a")
    assert installation.share("host-c", own) == (6, 3)

    installation.report("host-b", leaving)
    leaving.leave()
    assert installation.share("host-c", own) == (3, 0)


def test_leave__host_ends_in_order__nobody_misses_it_and_no_late_report_brings_it_back(installation: Hosts) -> None:
    leaving, other = installation.start("host-a"), installation.start("host-b")
    installation.alarms("host-a", leaving)
    leaving.leave()
    installation.report("host-a", leaving)
    let_pass(3600, of="host-a")

    assert installation.alarms("host-b", other) == {}
    assert [(host.name, host.state) for host in hosts.seen_hosts()] == [("host-a", "left"), ("host-b", "serving")]


def test_leave__database_away__ends_all_the_same(installation: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    leaving = installation.start("host-a")
    with patch.object(hosts, "report", side_effect=OperationalError("away")):
        leaving.leave()

    assert "host.leaves_unsaid error=OperationalError" in caplog.text


def test_seen_hosts__gone_for_good__forgotten(installation: Hosts) -> None:
    left = installation.start("host-a")
    installation.start("host-b")
    installation.alarms("host-a", left)
    left.leave()
    let_pass(2 * 86400, of="host-a")
    let_pass(2 * 86400, of="host-b")

    assert [(host.name, host.state) for host in hosts.seen_hosts()] == [("host-b", "silent")]
    let_pass(6 * 86400, of="host-b")
    assert hosts.seen_hosts() == []
    assert not Host.objects.exists()


def test_alarms__two_hosts_of_one_name__said(installation: Hosts) -> None:
    one = installation.start("host-a")
    two = installation.start("host-a")

    assert installation.alarms("host-a", one).keys() == {"host_name_shared host-a"}
    assert installation.alarms("host-a", two).keys() == {"host_name_shared host-a"}


def test_alarms__nobody_schedules__said_by_a_host_that_does_not(installation: Hosts) -> None:
    presence = installation.start("host-a")
    Lease.objects.update(renewed_at=F("renewed_at") - timedelta(seconds=40))

    assert installation.alarms("host-a", presence).keys() == {"beat_stale"}
    Lease.objects.all().delete()
    assert installation.alarms("host-a", presence).keys() == {"beat_stale"}


def test_admin__hosts__superusers_see_their_state_and_delete_one_that_is_gone(
    installation: Hosts, admin_client: Client, client: Client
) -> None:
    installation.start("host-a")
    let_pass(60, of="host-a")
    page = reverse("admin:core_host_changelist")

    shown = admin_client.get(page).content.decode()

    assert "silent" in shown
    assert "shipper" in shown
    assert client.get(page).status_code == 302
    admin_client.post(reverse("admin:core_host_delete", args=["host-a"]), {"post": "yes"})
    assert not Host.objects.exists()
