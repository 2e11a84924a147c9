from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from config.version import VERSION

_ROOT = Path(__file__).parents[2]


def _toml(path: str) -> dict[str, Any]:
    return tomllib.loads((_ROOT / path).read_text(encoding="utf-8"))


def test_version__package__reads_it_from_the_module() -> None:
    package = _toml("pyproject.toml")

    assert "version" in package["project"]["dynamic"]
    assert package["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "config.version.VERSION"}


def test_version__openapi_document__has_it(client: Client) -> None:
    assert client.get("/api/schema/?format=json").json()["info"]["version"] == VERSION


def test_version__changelog__begins_with_it() -> None:
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)[0] == VERSION


def test_version__client_for_python__is_the_same() -> None:
    assert _toml("clients/python/pyproject.toml")["project"]["version"] == VERSION


@pytest.mark.parametrize(
    "path", ["package.json", "clients/typescript/package.json", "clients/typescript/package-lock.json"]
)
def test_version__client_for_typescript__is_the_same(path: str) -> None:
    assert json.loads((_ROOT / path).read_text(encoding="utf-8"))["version"] == VERSION
