from __future__ import annotations

import re

import pytest
from django.conf import settings

from config.supervisor.background import CeleryWorker, Exporter, Shipper
from config.supervisor.web import BACKLOG
from tests.live.service import ROOT

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
SOCKET = "prompt-gateway.socket"
# What systemd knows in the sections that are used here: systemd.unit(5), systemd.service(5), systemd.exec(5),
# systemd.kill(5), systemd.resource-control(5). systemd itself only warns of a name that is misspelt.
_KNOWN = {
    "Unit": "Description Documentation Wants After StartLimitIntervalSec",
    "Service": (
        "Type User Group WorkingDirectory EnvironmentFile Environment ExecStart ExecReload KillMode"
        " TimeoutStopSec TimeoutStartSec Restart RestartSec LimitNOFILE StateDirectory StateDirectoryMode UMask"
        " NoNewPrivileges CapabilityBoundingSet PrivateTmp PrivateDevices ProtectSystem ProtectHome ProtectClock"
        " ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables"
        " RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality"
        " SystemCallArchitectures SystemCallFilter"
    ),
    "Socket": "ListenStream Backlog",  # systemd.socket(5)
    "Install": "WantedBy",
}


def _unit(name: str) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
            continue
        key, separator, value = line.partition("=")
        assert separator, f"{name}: {line}"
        section.append((key, value))
    return sections


def _values(name: str, key: str) -> list[str]:
    return [value for found, value in _unit(name)["Service"] if found == key]


def _environment(name: str) -> dict[str, str]:
    return dict(value.split("=", 1) for value in _values(name, "Environment"))


@pytest.mark.parametrize("name", [*UNITS, SOCKET])
def test_unit__names__are_systemd_s(name: str) -> None:
    for section, entries in _unit(name).items():
        assert {key for key, _ in entries} <= set(_KNOWN[section].split())


@pytest.mark.parametrize("name", UNITS)
def test_unit__secrets__are_files_that_the_code_reads(name: str) -> None:
    files = {key.removesuffix("_FILE"): value for key, value in _environment(name).items() if key.endswith("_FILE")}

    assert files == {secret: f"/etc/prompt-gateway/secrets/{secret}" for secret in files}
    assert files.keys() == {"SECRET_KEY", "ENCRYPTION_KEYS", "DATABASE_URL", "REDIS_URL", "CLICKHOUSE_URL"}
    assert _environment(name)["VAR_DIR"] == f"/var/lib/{_values(name, 'StateDirectory')[0]}"


def test_units__commands__are_those_of_the_documentation() -> None:
    commands = {name: _values(name, "ExecStart")[0].partition(" manage.py ")[2] for name in UNITS}

    assert commands == {
        "prompt-gateway-migrate.service": "migrate_all",
        "prompt-gateway.service": "serve --no-migrate",
    }


def test_units__rights__are_the_same_few_for_the_tables_and_for_the_host() -> None:
    hardened = re.compile(r"NoNewPrivileges|CapabilityBoundingSet|Private|Protect|Restrict|LockPersonality|SystemCall")
    entries = [{entry for entry in _unit(name)["Service"] if hardened.match(entry[0])} for name in UNITS]

    assert entries[0] == entries[1]
    assert {("NoNewPrivileges", "yes"), ("CapabilityBoundingSet", ""), ("ProtectSystem", "strict")} <= entries[0]


def test_socket__of_the_host__is_the_one_that_serve_takes_over() -> None:
    socket = dict(_unit(SOCKET)["Socket"])

    assert ("Wants", SOCKET) in _unit("prompt-gateway.service")["Unit"]
    assert socket == {"ListenStream": f"{settings.HOST}:8000", "Backlog": str(BACKLOG)}


def test_host__tables_cannot_be_made_yet__goes_on_trying() -> None:
    """A unit that another one requires takes that one's start with it when it fails (systemd.unit(5), Requires=)."""
    entries = _unit("prompt-gateway.service")
    before = "prompt-gateway-migrate.service"

    assert ("Wants", before) in entries["Unit"]
    assert before in dict(entries["Unit"])["After"].split()
    assert ("StartLimitIntervalSec", "0") in entries["Unit"]
    assert ("Restart", "always") in entries["Service"]


def test_host__times__leave_what_the_code_takes_to_stop() -> None:
    name = "prompt-gateway.service"
    prestop = int(_environment(name)["PRESTOP_SECONDS"])
    after = 2 * (Shipper.stop_seconds + Exporter.stop_seconds) + CeleryWorker.stop_seconds

    assert int(_values(name, "TimeoutStopSec")[0]) > prestop + settings.DRAIN_SECONDS + 5 + after
    # `serve` stops its processes itself, in their order.
    assert _values(name, "KillMode") == ["mixed"]


def test_haproxy_and_systemd__prestop__is_longer_than_haproxy_takes_to_leave_a_host_out() -> None:
    haproxy = (ROOT / "deploy" / "proxies" / "haproxy.cfg").read_text(encoding="utf-8")
    found = re.search(r"inter (\d+)s fall (\d+)", haproxy)

    assert found is not None
    assert int(_environment("prompt-gateway.service")["PRESTOP_SECONDS"]) > int(found[1]) * int(found[2])
