"""The bytes of scripts and styles that a page loads, with the modules that its scripts import.

What arrives only when a part of the page is opened, such as the agent's panel, is counted separately: modules behind
`import()`, and stylesheets that a `data-style` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_SCRIPT = re.compile(r'<script[^>]* src="/static/([^"?]+)')
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/([^"?]+)')
_LATER_STYLE = re.compile(r' data-style="/static/([^"?]+)')
_IMPORT = re.compile(r'(?:from|import)\s*"(\.{1,2}/[^"]+)"')
_LATER_IMPORT = re.compile(r'import\(\s*"(\.{1,2}/[^"]+)"')


@dataclass(frozen=True, slots=True)
class AssetBytes:
    scripts: int
    styles: int
    later_scripts: int = 0
    later_styles: int = 0


def asset_bytes(html: str) -> AssetBytes:
    """Counts each file once. Raises FileNotFoundError for a missing one."""
    scripts, styles = _with_imports(_SCRIPT.findall(html)), set(_STYLE.findall(html))
    later_names = [name for module in scripts for name in _imports(module, _LATER_IMPORT)]
    later_scripts = _with_imports(later_names) - scripts
    later_styles = set(_LATER_STYLE.findall(html)) - styles
    return AssetBytes(*(sum(map(_size, names)) for names in (scripts, styles, later_scripts, later_styles)))


def _with_imports(names: Iterable[str]) -> set[str]:
    waiting, seen = list(names), set[str]()
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += _imports(module, _IMPORT)
    return seen


def _imports(module: str, pattern: re.Pattern[str]) -> list[str]:
    text = _file(module).read_text(encoding="utf-8")
    return [_normal(PurePosixPath(module).parent / imported) for imported in pattern.findall(text)]


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
