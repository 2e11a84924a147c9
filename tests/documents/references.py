from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("config", "agent", "console", "gateway", "rollouts", "prompts", "analytics", "integrations", "core")
FOLDERS = (*APPS, "tests", "benchmarks", "docs", "deploy", "requirements")
DOCUMENTS = sorted(
    path
    for folder in (".", "docs", "docs/providers", "benchmarks", "benchmarks/results")
    for path in (ROOT / folder).glob("*.md")
)
SOURCES = sorted(
    path
    for folder in (*APPS, "tests", "benchmarks")
    for pattern in ("*.py", "*.sql", "*.lua", "*.js", "*.toml")
    for path in (ROOT / folder).rglob(pattern)
    if ".peers" not in path.parts
)

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_CITATION = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md(?:#[\w-]+)?")
_ABSENT = re.compile(r"\bdesign, section \d|\((?:specification|design)[,;]")
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`")
_MODULE = re.compile(rf"`((?:{'|'.join((*APPS, 'tests', 'benchmarks'))})(?:\.\w+)+)(?<!\.md)`")


def links(document: Path) -> Iterator[tuple[Path, str]]:
    for target in _LINK.findall(_FENCE.sub("", document.read_text(encoding="utf-8"))):
        file, _, anchor = target.partition("#")
        yield (document.parent / file).resolve() if file else document, anchor


def citations(source: Path) -> Iterator[tuple[Path, str]]:
    for citation in _CITATION.findall(source.read_text(encoding="utf-8")):
        file, _, anchor = citation.partition("#")
        yield ROOT / file, anchor


def cites_absent_document(source: Path) -> bool:
    """The design and the specification are not in the repository."""
    return _ABSENT.search(source.read_text(encoding="utf-8")) is not None


def paths(document: Path) -> list[str]:
    return _PATH.findall(_FENCE.sub("", document.read_text(encoding="utf-8")))


def modules(document: Path) -> list[str]:
    return _MODULE.findall(_FENCE.sub("", document.read_text(encoding="utf-8")))


def anchors(document: Path) -> set[str]:
    """Makes anchors as GitHub and most renderers do."""
    counts: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", document.read_text(encoding="utf-8"))):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return found


def is_defined(name: str) -> bool:
    """Accepts a package, a module, a name in a module, or a string in one, as of a task."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        if place.with_suffix(".py").is_file():
            text, rest = place.with_suffix(".py").read_text(encoding="utf-8"), parts[length:]
            return not rest or re.search(rf"\b{re.escape(rest[0])}\b", text) is not None
        if place.is_dir():
            break
    return (place.is_dir() and length == len(parts)) or any(f'"{name}"' in text for text in _python_texts())


@cache
def _python_texts() -> tuple[str, ...]:
    return tuple(source.read_text(encoding="utf-8") for source in SOURCES if source.suffix == ".py")
