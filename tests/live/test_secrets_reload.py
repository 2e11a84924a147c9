"""SIGHUP has `serve` read its secrets again and use them, while clients with streams notice nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

import requests
from cryptography.fernet import Fernet

from tests.live.conftest import StartService
from tests.live.service import LiveService
from tests.live.test_rolling_restart import Load
from tests.waiting import TIMEOUT_SECONDS, wait_until


class Keys:
    def __init__(self, file: Path, value: str) -> None:
        self._file = file
        self.write(value)
        self.environment = {"ENCRYPTION_KEYS_COMMAND": f"cat {file}", "WEB_WORKERS": "2", "PRESTOP_SECONDS": "0"}

    def write(self, value: str) -> None:
        self._file.write_text(value, encoding="utf-8")


def _hang_up(service: LiveService, until: str) -> None:
    count = service.log.count(until)
    os.kill(service.process.pid, signal.SIGHUP)
    wait_until(lambda: service.log.count(until) > count, seconds=2 * TIMEOUT_SECONDS, what=until)


def _workers(service: LiveService) -> list[int | None]:
    return [service.pid("web-1"), service.pid("web-2"), service.pid("celery")]


def _stored_token(service: LiveService) -> bytes:
    headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
    body = {"provider": "groq", "api_key": "sk-groq"}
    url = f"{service.base_url}/api/llm/integrations?project_id={service.project_id}"
    added = requests.post(url, json=body, headers=headers, timeout=TIMEOUT_SECONDS)
    assert added.status_code == 201, added.text
    with sqlite3.connect(service.var_dir / "db.sqlite3") as database:
        ((token,),) = database.execute("SELECT encrypted_secret FROM integrations_providerintegration").fetchall()
    return str(token).encode()


def test_hangup__keys_rotated_under_load_with_streams__new_ones_in_use_and_no_client_error(
    start_service: StartService, tmp_path: Path
) -> None:
    former, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    keys = Keys(tmp_path / "keys", former)
    service = start_service(keys.environment)
    wait_until(lambda: service.pid("celery"), what="celery")
    before = _workers(service)
    load = Load(int(urlsplit(service.base_url).port or 0), service.api_key)
    try:
        load.wait_for_more()
        keys.write(f"{new},{former}")
        _hang_up(service, "secrets.in_use changed=ENCRYPTION_KEYS")
        load.wait_for_more()
    finally:
        load.stop()

    assert load.errors == []
    assert Fernet(new).decrypt(_stored_token(service)) == b"sk-groq"
    wait_until(lambda: not set(before) & set(_workers(service)) and all(_workers(service)), what="new processes")
    assert former not in service.log and new not in service.log
    assert service.stop() == 0


def test_hangup__nothing_new_or_unusable__service_goes_on_with_what_it_has(
    start_service: StartService, tmp_path: Path
) -> None:
    former = Fernet.generate_key().decode()
    keys = Keys(tmp_path / "keys", former)
    service = start_service(keys.environment)
    before = _workers(service)[:2]

    _hang_up(service, "secrets.read changed=none")
    keys.write("no key of Fernet")
    _hang_up(service, "secrets.not_read reason=Environment variable ENCRYPTION_KEYS: expected Fernet keys")
    keys.write("")
    _hang_up(
        service, "secrets.not_read reason=Environment variable ENCRYPTION_KEYS_COMMAND: the command printed nothing"
    )
    keys.write(Fernet.generate_key().decode())
    # With keys of another installation no web worker would start.
    _hang_up(service, "secrets.not_in_use changed=ENCRYPTION_KEYS reason=a process that tried them")
    assert "has none of the keys that this installation's secrets are encrypted with" in service.log

    assert _workers(service)[:2] == before
    assert Fernet(former).decrypt(_stored_token(service)) == b"sk-groq"
    assert service.stop() == 0
