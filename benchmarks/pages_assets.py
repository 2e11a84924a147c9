"""The bytes of scripts and styles that a page loads, with the modules that its scripts import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_SCRIPT = re.compile(r'<script[^>]* src="/static/([^"?]+)')
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/([^"?]+)')
_IMPORT = re.compile(r'(?:from|import)\s*\(?"(\.{1,2}/[^"]+)"')


def asset_bytes(html: str) -> tuple[int, int]:
    """Returns the bytes of the scripts and those of the styles of a page. Raises FileNotFoundError for one that is
    missing."""
    scripts: set[str] = set()
    for name in _SCRIPT.findall(html):
        scripts.update(_with_imports(name, scripts))
    return sum(_size(name) for name in scripts), sum(_size(name) for name in set(_STYLE.findall(html)))


def _with_imports(name: str, known: set[str]) -> Iterator[str]:
    """Yields a module and all that it imports, each once."""
    waiting, seen = [name], set(known)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        yield module
        for imported in _IMPORT.findall(_file(module).read_text(encoding="utf-8")):
            waiting.append(_normal(PurePosixPath(module).parent / imported))


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _size(name: str) -> int:
    return _file(name).stat().st_size


def _file(name: str) -> Path:
    from django.contrib.staticfiles import finders

    found = finders.find(name)
    if not found:
        raise FileNotFoundError(name)
    return Path(found)
