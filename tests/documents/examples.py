"""The examples in the feature pages: a shell command that uses `$BASE`, and the answer below it.

In an answer, `…` inside a text stands for any characters, and a last list entry `"…"` for any further entries. Fields
and headers that an example leaves out may have any value.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.documents.references import ROOT

_EXAMPLE = re.compile(
    r"^```sh\n((?:(?!```).)*?\$BASE.*?)```\n(?:\n?```(json|http|text)\n(.*?)```\n)?", re.MULTILINE | re.DOTALL
)
_SHELL = 'curl() { command curl --silent --show-error --no-buffer "$@"; }\n'
_SECONDS = 60.0
_MORE = "…"


@dataclass(frozen=True)
class Example:
    command: str
    kind: str
    answer: str

    def run(self, variables: Mapping[str, str]) -> str:
        shell = subprocess.run(
            ["/bin/sh", "-c", _SHELL + self.command],
            env={"PATH": os.environ["PATH"], **variables},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        return shell.stdout if shell.returncode == 0 else shell.stderr

    def matches(self, output: str) -> bool:
        if self.kind == "json":
            return _is_like(_decoded(output), json.loads(self.answer))
        if self.kind == "http":
            return _is_like_response(output, self.answer)
        return all(_is_like_text(output, line, whole=False) for line in self.answer.splitlines())


def examples_of(page: Path) -> list[Example]:
    return [Example(*found) for found in _EXAMPLE.findall(page.read_text(encoding="utf-8"))]


def pages() -> list[Path]:
    return [page for page in sorted((ROOT / "docs").glob("*.md")) if examples_of(page)]


def _is_like_response(output: str, answer: str) -> bool:
    (status, headers, body), (shown_status, shown_headers, shown_body) = _response(output), _response(answer)
    return (
        status == shown_status
        and all(_is_like_text(headers.get(name, ""), value) for name, value in shown_headers.items())
        and (not shown_body or _is_like(_decoded(body), json.loads(shown_body)))
    )


def _response(text: str) -> tuple[str, dict[str, str], str]:
    head, _, body = text.replace("\r\n", "\n").partition("\n\n")
    if head.startswith("HTTP/1.1 100"):
        return _response(body)
    status, *lines = head.splitlines()
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    return status.split(" ")[1], headers, body


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_like(value: Any, shown: Any) -> bool:
    if isinstance(shown, dict):
        return isinstance(value, dict) and all(
            name in value and _is_like(value[name], member) for name, member in shown.items()
        )
    if isinstance(shown, list):
        if shown and shown[-1] == _MORE:
            shown, value = shown[:-1], value[: len(shown) - 1] if isinstance(value, list) else value
        return isinstance(value, list) and len(value) == len(shown) and all(map(_is_like, value, shown))
    if isinstance(shown, str):
        return isinstance(value, str) and _is_like_text(value, shown)
    return type(value) is type(shown) and value == shown


def _is_like_text(text: str, shown: str, *, whole: bool = True) -> bool:
    pattern = ".*".join(map(re.escape, shown.split(_MORE)))
    return (re.fullmatch if whole else re.search)(pattern, text, re.DOTALL if whole else re.NOFLAG) is not None
