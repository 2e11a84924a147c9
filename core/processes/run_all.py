from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack


def run_all(*parts: Callable[[], object]) -> None:
    """Runs the parts in order, each of them even if one before it failed. Raises the last error afterwards."""
    with ExitStack() as stack:
        for part in reversed(parts):
            stack.callback(part)
