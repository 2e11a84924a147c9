from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_suffix(".toml")
_PLACEHOLDER = re.compile(r"<<(?P<name>[a-z_]+)(?: (?P<words>[0-9]+))?>>")


class Rule(NamedTuple):
    name: str
    weight: float
    pattern: str
    untrusted: bool
    guarded: bool


def _loaded() -> tuple[float, tuple[Rule, ...]]:
    table: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    fragments = table["fragments"]
    rules = tuple(
        Rule(
            row["name"],
            row["weight"],
            "(?is)" + _filled(row["pattern"], fragments),
            row.get("untrusted", False),
            row.get("guarded", False),
        )
        for row in table["rules"]
    )
    return table["threshold"], rules


def _filled(pattern: str, fragments: Mapping[str, str]) -> str:
    def fragment(match: re.Match[str]) -> str:
        if match["words"]:
            between = _filled(fragments["s"], fragments)
            return f"(?:{between}{fragments['word']}){{0,{match['words']}}}{between}"
        return _filled(fragments[match["name"]], fragments)

    return _PLACEHOLDER.sub(fragment, "".join(line.strip() for line in pattern.splitlines()))


THRESHOLD, RULES = _loaded()
