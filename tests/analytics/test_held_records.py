"""Records that join the spool all together or not at all, whatever became of the process that wrote them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.spool.held import HeldRecords, settle_held
from tests.analytics.test_spool import ids
from tests.factories.analytics import make_entry

# Writes two records, says their name, and waits to be killed.
_OWNER = """
import sys
from pathlib import Path
from analytics.spool.held import HeldRecords
from tests.factories.analytics import make_entry
held = HeldRecords(Path(sys.argv[1]))
held.append(make_entry(b"{}", b"1"))
held.append(make_entry(b"{}", b"2"))
print(held.name, flush=True)
sys.stdin.read()
"""


def test_held_records__published__are_all_in_the_spool(spool: Path) -> None:
    held, entries = HeldRecords(spool), [make_entry(b"{}", b"1"), make_entry(b"", b"2")]
    for entry in entries:
        held.append(entry)
    assert not ids(spool)

    held.publish()

    assert ids(spool) == [entry.record.request_id for entry in entries]


def test_held_records__discarded__leave_nothing(spool: Path) -> None:
    held = HeldRecords(spool)
    held.append(make_entry(b"{}", b"1"))

    held.discard()

    assert not ids(spool) and not list((spool / "held").iterdir())


def test_settling__while_the_owner_lives__touches_nothing(spool: Path) -> None:
    held = HeldRecords(spool)
    held.append(make_entry(b"{}", b"1"))

    assert settle_held(spool, lambda name: True) == 0

    held.publish()
    assert len(ids(spool)) == 1


@pytest.mark.parametrize(("is_decided", "records"), [(True, 2), (False, 0)])
def test_settling__after_the_owner_was_killed__publishes_what_was_decided_for(
    spool: Path, is_decided: bool, records: int
) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    command = [sys.executable, "-c", _OWNER, str(spool)]
    owner = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    name = owner.stdout.readline().strip()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()

    settle_held(spool, lambda asked: is_decided and asked == name)

    assert len(ids(spool)) == records
    assert not list((spool / "held").iterdir())
    assert settle_held(spool, lambda asked: True) == 0
