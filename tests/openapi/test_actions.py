from __future__ import annotations

from tests.openapi.actions import STORED, lines


def test_operations__all__have_the_paths_and_ids_that_were_promised() -> None:
    assert lines() == STORED.read_text().splitlines()
