"""Tests that no case in JSON is forgotten: each table is of a test in the module beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.json")), ids=lambda path: str(path.relative_to(TESTS)))
def test_tables__of_a_module__are_each_of_a_test(path: Path) -> None:
    source, tables = path.with_suffix(".py").read_text(), json.loads(path.read_bytes())

    read = [name for name in tables if f"def {name}(" in source or f'stored(__file__, "{name}")' in source]
    assert read == list(tables)
    assert source.count("@tabled\n") == sum(name.startswith("test_") for name in tables)
