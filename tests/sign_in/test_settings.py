from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.fresh import Python, configured
from tests.tables.cases import tabled

_GIVEN = {
    "OIDC_PROVIDERS": "our-company",
    "OIDC_OUR_COMPANY_ISSUER": "https://login.example.com/realms/staff/.well-known/openid-configuration",
    "OIDC_OUR_COMPANY_CLIENT_ID": "gateway",
    "OIDC_OUR_COMPANY_CLIENT_SECRET": "secret-of-the-client",
}
_SHOW = """
[one] = settings.OIDC_PROVIDERS
print(one.name, one.label, one.issuer, one.client_secret, ' '.join(one.scopes), one.groups_claim, one.links_by_email)
print(one)
print(one.groups)
"""


@pytest.fixture(scope="module")
def python() -> Iterator[Python]:
    with configured() as run:
        yield run


def test_provider__least_variables__defaults_of_the_rest(python: Python, tmp_path: Path) -> None:
    ran = python(_SHOW, tmp_path, **_GIVEN)

    assert ran.returncode == 0, ran.stderr
    shown, written, _ = ran.stdout.splitlines()
    assert shown == (
        "our-company Our company https://login.example.com/realms/staff secret-of-the-client"
        " openid profile email groups False"
    )
    assert "secret-of-the-client" not in written


def test_provider__secret_in_a_file_and_groups__are_read(python: Python, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from-a-file\n")
    groups = {"platform": "superuser", "shop, all": {"Shop": "editor"}}
    environment = {name: value for name, value in _GIVEN.items() if not name.endswith("SECRET")}
    ran = python(
        _SHOW,
        tmp_path,
        **environment,
        OIDC_OUR_COMPANY_CLIENT_SECRET_FILE=str(tmp_path / "secret"),
        OIDC_OUR_COMPANY_GROUPS=json.dumps(groups),
    )

    assert ran.returncode == 0, ran.stderr
    assert "from-a-file" in ran.stdout
    assert "'platform': GroupRights(is_superuser=True" in ran.stdout
    assert "Role.EDITOR" in ran.stdout


@tabled
def test_provider__that_cannot_be_read__stops_the_start_with_the_variable(
    python: Python, tmp_path: Path, name: str, value: str
) -> None:
    ran = python("print(settings.OIDC_PROVIDERS)", tmp_path, **{**_GIVEN, name: value})

    assert ran.returncode != 0
    assert f"Environment variable {name}: " in ran.stderr.strip().splitlines()[-1]
    assert "secret-of-the-client" not in ran.stderr


def test_local_login__off_without_a_provider__stops_the_start(python: Python, tmp_path: Path) -> None:
    ran = python("print(settings.LOCAL_LOGIN)", tmp_path, LOCAL_LOGIN="0")
    assert "Environment variable LOCAL_LOGIN: without OIDC_PROVIDERS nobody could sign in" in ran.stderr


@pytest.mark.parametrize(
    ("given", "passwords"),
    [({}, True), ({"LOCAL_LOGIN": "0"}, False), ({"SECOND_FACTOR": "all"}, True)],
)
def test_backends__without_local_login__none_takes_a_password(
    python: Python, tmp_path: Path, given: dict[str, str], passwords: bool
) -> None:
    ran = python("print(settings.AUTHENTICATION_BACKENDS)", tmp_path, **_GIVEN, **given)

    assert ran.returncode == 0, ran.stderr
    assert ("ModelBackend" in ran.stdout or "PasswordBackend" in ran.stdout) is passwords
