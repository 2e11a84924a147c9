from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.references import (
    DOCUMENTS,
    ROOT,
    SOURCES,
    anchors,
    citations,
    cites_absent_document,
    is_defined,
    links,
    modules,
    paths,
)


def broken(references: list[tuple[Path, str]]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}#{anchor}"
        for file, anchor in references
        if not file.exists() or (anchor and anchor not in anchors(file))
    ]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_document__links__lead_to_files_and_headings(document: Path) -> None:
    assert broken([*links(document), *citations(document)]) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_document__paths_and_modules__exist(document: Path) -> None:
    assert [path for path in paths(document) if not (ROOT / path).exists()] == []
    assert [name for name in modules(document) if not is_defined(name)] == []


def test_sources__cited_pages_and_anchors__exist() -> None:
    found = {name_of(source): broken(list(citations(source))) for source in SOURCES}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_sources__documents_outside_the_repository__are_not_cited() -> None:
    assert [name_of(source) for source in SOURCES if cites_absent_document(source)] == []


def test_index__every_page__is_listed() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {file for file, _ in links(index)}
    pages = {page for page in (ROOT / "docs").glob("*.md") if page != index}
    assert {name_of(page) for page in pages - listed} == set()
