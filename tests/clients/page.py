from __future__ import annotations

import re
from dataclasses import dataclass

from tests.clients.clients import ROOT

PAGE = ROOT / "docs" / "clients.md"
_SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A line that prints ends with a comment, which is what it prints.
_PRINTED = re.compile(r"^(?:print|console\.log)\(.*\);?  ?(?:#|//) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    name: str
    language: str
    source: str

    @property
    def printed(self) -> list[str]:
        return _PRINTED.findall(self.source)


def sections() -> dict[str, list[Snippet]]:
    return {
        title: [
            Snippet(f"snippet{number}", language, source)
            for number, (language, source) in enumerate(_FENCE.findall(text))
        ]
        for title, text in _SECTION.findall(PAGE.read_text(encoding="utf-8"))
    }


def snippets_below(title: str) -> list[Snippet]:
    return sections()[title]
