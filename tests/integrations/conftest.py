from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.dialects.server import DialectServer


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    """A server for the fakes of all vendors. To play a name forgets what was played under it before."""
    with DialectServer() as running:
        yield running
