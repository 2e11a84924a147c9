"""Tests that the tables of docs/providers/*.md match the tests' observations, and that no field in them vanishes."""

from __future__ import annotations

import pytest

from tests.integrations.fields.known import KNOWN
from tests.integrations.fields.tables import COMMAND, FOLDER, pages, section_of


@pytest.mark.parametrize("page", pages())
def test_table__of_a_page__is_current(page: str) -> None:
    assert section_of(page) == pages()[page](), f"docs/providers/{page} is not current: {COMMAND}"


def test_tables__of_all_pages__list_no_field_that_vanishes() -> None:
    sections = {page: section_of(page) for page in pages()}
    assert sections.keys() == {file.name for file in FOLDER.glob("*.md")}
    assert KNOWN or not [page for page, text in sections.items() if "SILENTLY" in text or "BROKEN" in text]
