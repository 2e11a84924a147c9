from __future__ import annotations

from tests.rights.table import FILE, table


def test_table__of_rights__is_the_one_that_was_reviewed() -> None:
    written = FILE.read_text(encoding="utf-8").splitlines()
    now = table().splitlines()

    new, gone = sorted(set(now) - set(written)), sorted(set(written) - set(now))
    assert (new, gone) == ([], []), "Review who may do what, and run `python -m tests.rights.table`."
    assert written == now
