from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.test import Client

from config.settings.base import BASE_DIR

_APPS = ("agent", "analytics", "config", "console", "core", "gateway", "integrations", "prompts", "rollouts")
_STYLESHEETS = sorted(path for app in _APPS for path in (BASE_DIR / app).rglob("static/**/*.css"))
_OF_EVERY_PAGE = ("ui.css", "icons.svg", "frame.js", "keys.js", "panels.js", "plot.js")
_MAX_BYTES = 22_000
# A class of a page stands in an attribute, or as a text of a script or of Python code.
_ATTRIBUTE = re.compile(r"""(?:class|id)=\\?["'](.*?)\\?["'](?=[\s>/\\])""", re.DOTALL)
_TEXT = re.compile(r"""["'`]([^"'`\n]*)["'`]""")
_TAG = re.compile(r"\{%.*?%\}", re.DOTALL)
_VALUE = re.compile(r"\$?\{+[^{}]*\}+")
_NAME = re.compile(r"[\w*-]+")
# A name such as `turn-*`, whose end is a value.
_FILLED_IN = re.compile(r"[a-z][\w-]+-\*")
_SELECTOR = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")


def _sources() -> Iterator[Path]:
    contrib = Path(django.__file__).parent
    folders = [*(BASE_DIR / app for app in _APPS), contrib / "contrib" / "admin", contrib / "forms"]
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.suffix in {".html", ".js", ".py"})


def _used_names() -> set[str]:
    names: set[str] = set()
    for path in _sources():
        source = path.read_text(encoding="utf-8")
        found = _ATTRIBUTE.findall(_TAG.sub(" ", source))
        if path.suffix != ".html":
            found += _TEXT.findall(source)
        for text in found:
            names.update(_NAME.findall(_VALUE.sub("*", _TAG.sub(" ", text))))
    return names


def _selected_names(stylesheet: str) -> set[str]:
    rules = re.sub(r"/\*.*?\*/", "", stylesheet, flags=re.DOTALL)
    return {name for selector in re.findall(r"([^{}]+)\{", rules) for name in _SELECTOR.findall(selector)}


def _unused(stylesheet: str, used: set[str]) -> list[str]:
    beginnings = tuple(name.removesuffix("*") for name in used if _FILLED_IN.fullmatch(name))
    return sorted(name for name in _selected_names(stylesheet) - used if not name.startswith(beginnings))


@pytest.fixture(scope="module")
def used() -> set[str]:
    return _used_names()


@pytest.mark.parametrize("path", _STYLESHEETS, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_stylesheet__each_class_and_id__is_on_a_page(path: Path, used: set[str]) -> None:
    assert _unused(path.read_text(encoding="utf-8"), used) == []


def test_unused__rule_of_no_page__is_found(used: set[str]) -> None:
    rules = ".card { margin: 0 } .gone-with-its-page { color: red } @media print { .turn-user, #lost-id { margin: 0 } }"
    assert _unused(rules, used) == ["gone-with-its-page", "lost-id"]


def test_stylesheet__of_every_page_and_icons__are_sent_compressed_within_the_bound(client: Client) -> None:
    size = 0
    for name in _OF_EVERY_PAGE:
        answer: Any = client.get(f"/static/core/ui/{name}", headers={"accept-encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        size += len(b"".join(answer.streaming_content))
    assert size <= _MAX_BYTES
