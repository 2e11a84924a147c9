from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.live.service import ROOT, minimal_environment

# Each costs every start its time, and most processes never need it: it is imported when it is first used.
_NOT_AT_THE_START = {
    "anthropic",
    "authlib",
    "autobahn",
    "boto3",
    "botocore.auth",
    "chdb",
    "daphne",
    "google.auth",
    "joserfc",
    "mcp",
    "numpy",
    "openai",
    "pandas",
    "phonenumbers",
    "pydantic",
    "segno",
    "twisted",
}
_LOOK = """
import json, os, sys, threading
from django.core.management import get_commands
import django

django.setup()
import config.management.commands.serve
from config.supervisor.supervise import IMPORTED
from config.supervisor.fork_server import import_modules

import_modules(IMPORTED)
from core.processes.schema import import_migrations

import_migrations()
from django.db import connections

print(json.dumps({
    "modules": sorted(sys.modules),
    "threads": len(os.listdir("/proc/self/task")) if sys.platform == "linux" else threading.active_count(),
    "connections": [one.alias for one in connections.all(initialized_only=True) if one.connection is not None],
    "sockets": [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{name}") and int(name) > 2] if sys.platform == "linux" else [],
}))
"""


def test_fork_server__ready_to_fork__has_no_module_thread_or_connection_too_many(tmp_path: Path) -> None:
    environment = minimal_environment(tmp_path) | {"DJANGO_SETTINGS_MODULE": "config.settings.base"}
    command = [sys.executable, "-c", _LOOK]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)

    assert "config.asgi" in found["modules"]
    assert "not_imported" not in done.stderr
    assert _NOT_AT_THE_START.isdisjoint(found["modules"])
    assert (found["threads"], found["connections"]) == (1, [])
    assert [name for name in found["sockets"] if not name.startswith("/dev/")] == []
