"""Cases of tests in JSON: `test_x.json` has those of the tests of `test_x.py`, by the names of the tests, and values of
the module by their names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec
import pytest

_Test = TypeVar("_Test", bound=Callable[..., object])


def tabled(test: _Test) -> _Test:
    """Parametrizes a test with its cases: `given` names the arguments, and each of `cases` has a value for each, which
    becomes one of the type that the test states."""
    table = _tables(Path(str(sys.modules[test.__module__].__file__)).with_suffix(".json"))[test.__name__]
    hints = get_type_hints(test)
    kinds = [hints[name] for name in table["given"]]
    rows = [pytest.param(*map(_typed, case, kinds), id=_id(case)) for case in table["cases"]]
    parametrized: _Test = pytest.mark.parametrize(table["given"], rows)(test)
    return parametrized


def stored(module: str, name: str) -> Any:
    """Returns what the JSON file beside the module has under the name."""
    return _tables(Path(module).with_suffix(".json"))[name]


@cache
def _tables(path: Path) -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(path.read_bytes())
    return tables


def _typed(value: Any, kind: Any) -> Any:
    """Returns the value as one of the type; bytes are given as text, and numbers stay as they are."""
    if kind is bytes:
        return value.encode()
    if isinstance(value, int):
        return value
    made = msgspec.convert(value, kind)
    # msgspec passes over the names that a record does not have.
    assert _has_all(msgspec.to_builtins(made, enc_hook=str), value), f"{value} has a field that {kind} has not"
    return made


def _has_all(made: Any, given: Any) -> bool:
    if isinstance(made, dict) and isinstance(given, dict):
        return all(name in made and _has_all(made[name], one) for name, one in given.items())
    if isinstance(made, list) and isinstance(given, list):
        return all(map(_has_all, made, given))
    return True


def _id(case: list[Any]) -> str:
    """Returns the beginning of each value, by which `pytest -k` finds the case."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in case)
    return "-".join(text[:40].encode("ascii", "backslashreplace").decode() for text in texts)
