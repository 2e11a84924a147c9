"""`GET metrics/prompt-cache`: what the vendors' prompt caches saved and missed, from the records of requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.models import Project
from integrations.pricing.services import set_price
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/api/llm/metrics/prompt-cache"
NOW = datetime.now(UTC) - timedelta(hours=1)
MODEL: dict[str, Any] = {"provider": "anthropic", "model": "claude-sonnet-5"}


def request(project: Project, seconds: float, *, sent: int, read: int = 0, written: int = 0, **more: Any) -> Any:
    """Returns the record of a request at 2 dollars per million fresh tokens, 0.2 read and 2.5 written."""
    values: dict[str, Any] = {
        "project_id": str(project.pk),
        "ts": int((NOW + timedelta(seconds=seconds)).timestamp() * 1_000_000),
        "session_id": "talk",
        "prompt_tokens": sent,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "cost_known": True,
        "cost_input_usd": f"{(sent - read - written) * 2 / 1e6:.10f}",
        "cost_cache_read_usd": f"{read * 0.2 / 1e6:.10f}",
        "cost_cache_write_usd": f"{written * 2.5 / 1e6:.10f}",
        **MODEL,
    }
    return make_entry(**{**values, **more})


def row(project: Project) -> dict[str, Any]:
    answer = client_of(project).get(PATH)
    assert answer.status_code == 200, answer.json()
    (found,) = answer.json()["results"]
    return dict(found)


def test_saved__reads_less_the_premium_of_writes(project: Project, spool: Path) -> None:
    store(
        spool,
        request(project, 0, sent=10_000, written=9_000),
        request(project, 10, sent=11_000, read=9_000, written=1_000),
    )
    found = row(project)

    assert (found["cache_read_tokens"], found["cache_write_tokens"]) == (9_000, 10_000)
    # 9,000 reads save 1.8 dollars per million, 10,000 writes cost 0.5 dollars per million more.
    assert found["saved_usd"] == pytest.approx((9_000 * 1.8 - 10_000 * 0.5) / 1e6)
    # Of the 10,000 tokens before, 9,000 were read.
    assert found["missed_tokens"] == 1_000


def test_missed__repeated_prefix_that_was_not_read(project: Project, spool: Path) -> None:
    costs = {
        "input_cost_per_1m": Decimal(2),
        "output_cost_per_1m": Decimal(10),
        "cache_read_cost_per_1m": Decimal("0.2"),
    }
    set_price(project_id=project.pk, costs=costs, actor="test", **MODEL)
    store(
        spool,
        request(project, 0, sent=5_000),
        request(project, 60, sent=6_000),
        request(project, 60, sent=6_000, session_id="other"),
        request(project, 361, sent=7_000),
        request(project, 370, sent=3_000),
        request(project, 380, sent=500, session_id="short"),
        request(project, 390, sent=600, session_id="short"),
        request(project, 395, sent=9_000, session_id=""),
        request(project, 396, sent=9_000, session_id=""),
    )
    found = row(project)

    assert (found["missed_tokens"], found["saved_usd"]) == (5_000, 0)
    assert found["missed_usd"] == pytest.approx(5_000 * 1.8 / 1e6)


def test_missed__model_without_a_price_of_reads__is_null(project: Project, spool: Path) -> None:
    store(
        spool,
        request(project, 0, sent=5_000, model="of-nobody"),
        request(project, 60, sent=6_000, model="of-nobody"),
    )

    assert row(project)["missed_usd"] is None
