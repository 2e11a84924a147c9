from __future__ import annotations

import pytest

from core.processes.run_all import run_all


def test_run_all__one_part_fails__the_others_run_in_order_and_it_is_raised() -> None:
    done: list[str] = []

    def fails() -> None:
        done.append("failed")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        run_all(lambda: done.append("first"), fails, lambda: done.append("last"))
    assert done == ["first", "failed", "last"]
