from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from config import env
from tests.tables.cases import tabled

NAME = "SUITE_VARIABLE"

READERS: dict[str, Callable[[], Any]] = {
    "boolean": lambda: env.boolean(NAME, True),
    "integer": lambda: env.integer(NAME, 7, minimum=1, maximum=9),
    "number": lambda: env.number(NAME, 0.5, minimum=0.1, maximum=2),
    "url": lambda: env.url(NAME, schemes=("http", "https")),
    "choice": lambda: env.choice(NAME, "INFO", ("INFO", "ERROR")),
    "origins": lambda: env.origins(NAME),
}
GOOD: dict[str, dict[str, Any]] = {
    "boolean": {"1": True, "TRUE": True, "on": True, "0": False, "No": False, "off": False},
    "integer": {"1": 1, "9": 9, " 5 ": 5},
    "number": {"0.1": 0.1, "2": 2.0, "1e0": 1.0},
    "url": {"https://a.example": "https://a.example"},
    "choice": {"error": "ERROR", "INFO": "INFO"},
    "origins": {
        "https://a.example": ["https://a.example"],
        "http://[::1]:5173, tauri://localhost": ["http://[::1]:5173", "tauri://localhost"],
        "*": ["*"],
    },
}
BAD: dict[str, list[str]] = {
    "boolean": ["2", "maybe", "truee"],
    "integer": ["0", "10", "1.5", "five", "0x5"],
    "number": ["0", "2.1", "nan", "inf", "-inf", "half"],
    "url": [
        "a.example",
        "ftp://a.example",
        "//a.example",
        "https://u:word@a:1,b:2/x",
        "https://a.example:70000",
        "https://[::1",
    ],
    "choice": ["err", "INFO,ERROR"],
    "origins": ["app.example", "https://a.example/", "https://a.example/path", "https://*.example", "null"],
}


@pytest.fixture(autouse=True)
def nothing_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_given", {})


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("value", [None, "", "   "])
def test_reader__unset_or_blank__default(reader: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    default = READERS[reader]()
    if value is not None:
        monkeypatch.setenv(NAME, value)
    assert READERS[reader]() == default


@pytest.mark.parametrize(("reader", "raw"), [(reader, raw) for reader, known in GOOD.items() for raw in known])
def test_reader__good_value__read(reader: str, raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, raw)
    assert READERS[reader]() == GOOD[reader][raw]


@pytest.mark.parametrize(("reader", "raw"), [(reader, raw) for reader, bad in BAD.items() for raw in bad])
def test_reader__bad_value__names_the_variable(reader: str, raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, raw)
    with pytest.raises(ImproperlyConfigured, match=f"^Environment variable {NAME}: expected "):
        READERS[reader]()


@pytest.mark.parametrize("reader", READERS)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=12))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_reader__any_text__value_or_a_refusal_that_hides_it(
    reader: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, text)
    try:
        READERS[reader]()
    except ImproperlyConfigured as refusal:
        assert str(refusal).startswith(f"Environment variable {NAME}: ")
        assert text not in str(refusal)


def test_strings__list__trimmed_without_empties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b ,")
    assert env.strings(NAME, ["x"]) == ["a", "b"]
    monkeypatch.delenv(NAME)
    assert env.strings(NAME, ["x"]) == ["x"]


def test_path__relative__made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(NAME, "sub/dir")
    assert env.path(NAME, Path("/x")) == tmp_path / "sub/dir"


def test_secret__file__wins_over_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from file\n")
    monkeypatch.setenv(NAME, "from variable")
    assert env.secret(NAME) == "from variable"
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    assert env.secret(NAME) == "from file"


def test_secret__missing_file__names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE"):
        env.secret(NAME)


def test_secret__file_is_not_text__names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\xff\xfe")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE"):
        env.secret(NAME)


def test_secret__empty_file__is_no_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    with pytest.raises(ImproperlyConfigured, match=f"^Environment variable {NAME}_FILE: the file is empty$"):
        env.secret(NAME)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_any_variable__file__is_read_from_it(
    read: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "value").write_text("\N{SNOWMAN}", encoding="utf-16")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "value"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE: expected a file of UTF-8 text"):
        read()


def test_variable__command__is_what_it_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one two\n")
    monkeypatch.setenv(f"{NAME}_COMMAND", f"cat {tmp_path / 'secret'} | cut -d ' ' -f 2")
    assert env.secret(NAME) == "two"


@tabled
def test_variable__command_that_fails__is_named_without_what_it_printed(
    command: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{NAME}_COMMAND", command)
    with pytest.raises(ImproperlyConfigured, match=f"^Environment variable {NAME}_COMMAND: {reason}$"):
        env.secret(NAME)


def test_variable__file_and_command__are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path))
    monkeypatch.setenv(f"{NAME}_COMMAND", "echo secret")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE and {NAME}_COMMAND: set one of them"):
        env.secret(NAME)


def test_read_again__changed_file__is_returned_and_then_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("former")
    monkeypatch.setenv(f"{NAME}_FILE", str(secret))
    assert env.secret(NAME) == "former"
    assert env.read_again() == {}
    secret.write_text("new")

    assert env.secret(NAME) == "former"
    assert env.read_again() == {NAME: "new"}
    assert env.give({NAME: "new"}) == {NAME: "former"}

    assert env.secret(NAME) == "new"
