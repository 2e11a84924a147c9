from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import requests
from django.conf import settings
from django.utils import timezone

from core.keys.services import issue_key
from core.models import Project
from core.rights.scopes import FIRST_KEY_SCOPES

_START_SECONDS = 120.0
_STOP_SECONDS = 60.0
_KEY_HOURS = 1


class ServiceError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Access:
    base_url: str
    project_id: str
    api_key: str = field(repr=False)


@contextmanager
def running_service() -> Iterator[str]:
    """Yields the base URL of the service on this VAR_DIR, which is started if none runs."""
    address = _announced()
    if address is not None and _answers(address):
        yield address
        return
    # The first start's output would be lost among the demo's lines: the next start prints it, and the demo makes a key
    # of its own.
    service = subprocess.Popen(
        [sys.executable, "manage.py", "serve"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "PORT": "0", "LOG_LEVEL": "WARNING"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield _wait_until_announced(service)
    finally:
        service.terminate()
        service.wait(timeout=_STOP_SECONDS)


def own_access(base_url: str) -> Access:
    """Issues a key that expires by itself, for the first project. Raises ServiceError if there is no project."""
    project = Project.objects.order_by("created_at").first()
    if project is None:
        raise ServiceError("There is no project yet: run `manage.py bootstrap --name demo` first.")
    expires_at = timezone.now() + timedelta(hours=_KEY_HOURS)
    _, key = issue_key(project, name="demo", scopes=FIRST_KEY_SCOPES, expires_at=expires_at)
    return Access(base_url, str(project.pk), key)


def _announced() -> str | None:
    file = settings.RUN_DIR / "gateway.url"
    return file.read_text(encoding="utf-8").strip() or None if file.exists() else None


def _answers(address: str) -> bool:
    try:
        return requests.get(f"{address}/healthz", timeout=10).ok
    except requests.ConnectionError:
        return False


def _wait_until_announced(service: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while (address := _announced()) is None or not _answers(address):
        if service.poll() is not None:
            raise ServiceError(f"`manage.py serve` ended with exit code {service.returncode}; its output is above.")
        if time.monotonic() > deadline:
            raise ServiceError(f"`manage.py serve` did not serve within {_START_SECONDS:.0f} seconds.")
        time.sleep(0.1)
    return address
