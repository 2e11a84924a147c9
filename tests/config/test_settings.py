from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from config.settings.database import _postgresql
from tests.config.fresh import Python, configured
from tests.tables.cases import tabled

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def python() -> Iterator[Python]:
    with configured() as run:
        yield run


def test_settings__empty_environment__sqlite_and_own_services(python: Python, tmp_path: Path) -> None:
    ran = python(
        "print(settings.DATABASES['default']['ENGINE'], settings.REDIS_URL, settings.CLICKHOUSE_URL, settings.DEBUG)",
        tmp_path / "new" / "var",
    )
    assert ran.returncode == 0, ran.stderr
    engine, redis, clickhouse, debug = ran.stdout.split()
    assert engine == "core.sqlite"
    assert redis == f"unix://{tmp_path / 'new' / 'var' / 'run' / 'redis.sock'}"
    assert (clickhouse, debug) == ("None", "False")


def test_settings__two_starts__same_secrets_for_the_owner_only(python: Python, tmp_path: Path) -> None:
    code = "print(settings.SECRET_KEY, settings.ENCRYPTION_KEYS[0])"
    first, second = python(code, tmp_path), python(code, tmp_path)

    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    folder = tmp_path / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {
        "secret_key": 0o600,
        "encryption_keys": 0o600,
    }


def test_settings__secrets_given__nothing_kept(python: Python, tmp_path: Path) -> None:
    key = Fernet.generate_key().decode()
    ran = python("print(settings.ENCRYPTION_KEYS)", tmp_path, SECRET_KEY="given", ENCRYPTION_KEYS=f"{key}, {key}")
    assert ran.stdout.strip() == str([key, key])
    assert not (tmp_path / "secrets").exists()


@pytest.mark.parametrize("given", [{}, {"SECRET_KEY": "given"}], ids=["neither", "one"])
def test_settings__database_server_without_secrets__refused_and_none_made(
    python: Python, tmp_path: Path, given: dict[str, str]
) -> None:
    ran = python("print(settings.DEBUG)", tmp_path, DATABASE_URL="postgresql://u:private@db/gateway", **given)

    last_line = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode != 0
    assert "SECRET_KEY and ENCRYPTION_KEYS" in last_line
    assert "private" not in last_line
    assert not any((tmp_path / "secrets").glob("*"))


def test_settings__database_server_with_secrets_of_an_earlier_version__are_used(python: Python, tmp_path: Path) -> None:
    """An installation that has moved to a database server, or whose volume holds secrets, made them before."""
    made = python("print(settings.SECRET_KEY)", tmp_path)

    ran = python("print(settings.SECRET_KEY)", tmp_path, DATABASE_URL="postgresql://u:p@db/gateway")

    assert ran.stdout == made.stdout


@tabled
def test_settings__bad_value__start_refused_by_name(python: Python, tmp_path: Path, name: str, value: str) -> None:
    ran = python("", tmp_path, **{name: value})
    assert ran.returncode != 0
    last = ran.stderr.strip().splitlines()[-1]
    assert f"Environment variable {name}" in last
    assert value.isdigit() or value not in last


@tabled
@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("PORT", "abc", "expected a whole number"),
        ("VAR_DIR", "/dev/null/x", "cannot write into the folder /dev/null/x"),
    ],
)
def test_program__wrong_environment__ends_with_one_line(
    tmp_path: Path, program: list[str], name: str, value: str, problem: str
) -> None:
    ran = subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path), name: value},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith(f"Environment variable {name}: {problem}")


_PRODUCTION = {"DJANGO_SETTINGS_MODULE": "config.settings.production"}
_GUARDS = (
    "print(settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SECURE_HSTS_SECONDS > 0,"
    " settings.SECURE_PROXY_SSL_HEADER is not None, settings.SANDBOX)"
)


def test_production__neither_tls_nor_plain_http_chosen__refuses_and_says_what_to_set(
    python: Python, tmp_path: Path
) -> None:
    ran = python("", tmp_path, **_PRODUCTION)
    assert ran.returncode != 0
    last = ran.stderr.strip().splitlines()[-1]
    assert "TRUSTED_PROXIES" in last and "INSECURE_HTTP=1" in last


@tabled
def test_production__one_chosen__cookies_and_headers_follow(
    python: Python, tmp_path: Path, chosen: dict[str, str], printed: str
) -> None:
    ran = python(_GUARDS, tmp_path, **_PRODUCTION, **chosen)
    assert ran.stdout.strip() == printed, ran.stderr


@tabled
def test_database_url__parts__where_django_wants_them(url: str, expected: dict[str, Any]) -> None:
    read = _postgresql(url)
    assert {name: read[name] for name in expected} == expected


_FLEET = "postgres://ada@one.example:5433,two.example/hub?target_session_attrs=primary&sslmode=verify-full"


def test_database_url__several_hosts_and_options__libpq_gets_them_beside_our_own() -> None:
    read = _postgresql(_FLEET)

    assert (read["HOST"], read["PORT"]) == ("one.example,two.example", "5433,")
    assert read["OPTIONS"]["target_session_attrs"] == "primary"
    assert read["OPTIONS"]["sslmode"] == "verify-full"
    # Nobody waits for a server that has vanished as long as the kernel would.
    assert {"connect_timeout", "keepalives_idle", "tcp_user_timeout"} <= read["OPTIONS"].keys()


def test_database_url__nothing_said_of_the_servers__one_that_takes_writes() -> None:
    assert _postgresql("postgresql://u@h/name")["OPTIONS"]["target_session_attrs"] == "read-write"


@tabled
def test_database_url__cannot_be_meant__refused_with_the_reason_and_without_the_password(
    python: Python, tmp_path: Path, url: str, problem: str
) -> None:
    ran = python("", tmp_path, DATABASE_URL=url)

    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode != 0
    assert "Environment variable DATABASE_URL: " in last
    assert problem in last
    assert "private" not in last


def test_database_pool__size_set__shared_by_threads_in_place_of_lasting_connections(
    python: Python, tmp_path: Path
) -> None:
    secrets = {"SECRET_KEY": "given", "ENCRYPTION_KEYS": Fernet.generate_key().decode()}
    ran = python(
        "found = settings.DATABASES['default']; print(found['OPTIONS']['pool'], found['CONN_MAX_AGE'])",
        tmp_path,
        DATABASE_URL="postgresql://u@h/db",
        DATABASE_POOL_SIZE="5",
        DATABASE_POOL_SECONDS="2.5",
        **secrets,
    )

    assert ran.stdout.strip() == "{'min_size': 0, 'max_size': 5, 'timeout': 2.5, 'max_idle': 60} 0", ran.stderr
