from __future__ import annotations

import time
from pathlib import Path

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from analytics.models import TraceDestination
from analytics.spool.handover import FOLDER, handed, wanted

_LOOK_SECONDS = 5.0


def wait_until_needed(spool: Path) -> None:
    """Returns once there is a destination, or something left of one that is gone. Blocks, for ever in most
    installations."""
    while not _is_left_behind(spool) and not _is_any_known():
        time.sleep(_LOOK_SECONDS)
    connection.close()


def _is_left_behind(spool: Path) -> bool:
    return bool(wanted(spool) or handed(spool)) or any(path.is_dir() for path in (spool / FOLDER).glob("*-*"))


def _is_any_known() -> bool:
    try:
        return TraceDestination.objects.exists()
    except (DatabaseError, InterfaceError):
        return False
    finally:
        close_old_connections()
