from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management.base import CommandError

from config import deployment
from config.deployment.problem import Problem
from config.supervisor import preparation


def test_prepare_database__set_up_that_would_be_wrong__refused_with_every_reason_before_a_table_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong() -> Iterator[Problem]:
        yield Problem("redis", "Redis is a replica.")
        yield Problem("database", "The database takes no writes.")

    monkeypatch.setattr(deployment, "REFUSALS", (wrong,))

    # Without a database, whatever came after the refusal would fail otherwise.
    with pytest.raises(CommandError, match=r"^Redis is a replica\. The database takes no writes\.$"):
        preparation.prepare_database("http://127.0.0.1", lambda _: True, migrate=True)
