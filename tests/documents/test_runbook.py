"""docs/runbook.md has a section for each shipped alert, and no other; each rule links to its section."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documents.references import APPS, ROOT, SOURCES, anchors

_PAGE = ROOT / "docs" / "runbook.md"
_RULES = (ROOT / "deploy" / "monitoring" / "prometheus-rules.yaml").read_text(encoding="utf-8")
_NAMES = re.findall(r"^ +- alert: (\w+)$", _RULES, re.MULTILINE)


def _kinds() -> set[str]:
    sources = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in APPS and path.suffix == ".py"]
    return {kind for path in sources for kind in re.findall(r'\bAlarm\(\s*"(\w+)"', path.read_text(encoding="utf-8"))}


def _sections(page: Path) -> dict[str, str]:
    found = re.split(r"^### (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def test_sections__are_the_rules_and_the_kinds_of_alarms() -> None:
    named = [name for heading in _sections(_PAGE) for name in heading.split(" and ")]

    assert sorted(named) == sorted([*_NAMES, *_kinds()])


def test_sections__all__say_what_to_run_and_when_to_escalate() -> None:
    lacking = {
        heading
        for heading, text in _sections(_PAGE).items()
        if [part for part in ("**Means.**", "**Mend.**", "**Escalate**") if part not in text]
        or len(re.findall(r"^[^#\n]+# \S", text.partition("```sh")[2].partition("```")[0], re.MULTILINE)) != 3
    }

    assert lacking == set()


def test_rules__runbook_url__leads_to_the_section_of_the_rule() -> None:
    pattern = r"- alert: (\w+)$.*?runbook_url: docs/runbook\.md#(\S+)$"
    links = dict(re.findall(pattern, _RULES, re.MULTILINE | re.DOTALL))

    assert list(links) == _NAMES
    assert {name for name, link in links.items() if link.split("-and-")[0] != name.lower()} == set()
    assert set(links.values()) <= anchors(_PAGE)
