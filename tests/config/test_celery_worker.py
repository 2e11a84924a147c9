from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.live.service import ROOT
from tests.waiting import TIMEOUT_SECONDS

# A broker in memory, and a schedule that fails as soon as beat looks at it.
_PROGRAM = """
from celery.beat import Scheduler
from django.core.management import execute_from_command_line
from config.celery import app

class Failing(Scheduler):
    def tick(self):
        raise RuntimeError("the schedule is broken")

app.conf.update(dict.fromkeys(["broker_url", "broker_read_url", "broker_write_url"], "memory://"))
app.conf.update(broker_transport_options={}, beat_scheduler=Failing)
execute_from_command_line(["manage.py", "celery_worker", "--concurrency", "1"])
"""


def test_beat__dies__process_ends_so_that_it_is_started_again(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path)}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env=environment, check=True)

    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert "RuntimeError: the schedule is broken" in ran.stderr
    assert ran.returncode == 0, ran.stderr
