from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from analytics.request_log.record import AttemptRecord, Outcome
from analytics.spool.writer import SpoolWriter
from config.monitor.exposition import render
from tests.analytics.test_shipper import FakeStore, drain
from tests.factories.analytics import make_entry

MODELS = 2000


@pytest.fixture
def spool(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    settings.SPOOL_DIR = tmp_path / "spool"
    yield settings.SPOOL_DIR


def samples(text: bytes, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == name
    }


def test_metrics__two_thousand_models_in_many_projects__fewer_than_ten_thousand_series(spool: Path) -> None:
    projects = [str(uuid4()) for _ in range(200)]
    writer = SpoolWriter(spool)
    for number in range(MODELS * 3):
        writer.append(
            make_entry(
                project_id=projects[number % len(projects)],
                provider=f"provider-{number % 60}",
                model=f"model-{number % MODELS}",
                outcome=list(Outcome)[number % 4],
                error_code=f"code-{number % 80}" if number % 4 else "",
                cache_read_tokens=3,
                cache_write_tokens=4,
                is_stream=number % 8 == 0,
                ttft_ms=20,
                attempts=(AttemptRecord(f"provider-{number % 60}", "m", error=f"kind-{number % 70}"),),
            )
        )
    writer.close()
    drain(spool, FakeStore())

    text = render()

    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    assert len(lines) < 10_000
    # The requests of models that have no line of their own are in the line of the others.
    assert sum(samples(text, "prompt_gateway_requests_total").values()) == MODELS * 3


def test_metrics__for_a_key__show_its_project_alone(spool: Path) -> None:
    mine, other = str(uuid4()), str(uuid4())
    writer = SpoolWriter(spool)
    for project in (mine, other):
        writer.append(make_entry(project_id=project, prompt_tokens=7))
    writer.close()
    drain(spool, FakeStore())

    text = render(mine)

    assert other not in text.decode()
    assert list(samples(text, "prompt_gateway_requests_total").values()) == [1.0]
    # Figures without a project would reveal how busy the other projects are.
    assert "prompt_gateway_shipped_records" not in text.decode()


def test_metrics__nothing_shipped_and_no_monitor__says_so(spool: Path) -> None:
    text = render()
    assert samples(text, "prompt_gateway_monitor_up") == {(): 0.0}
    assert samples(text, "prompt_gateway_shipped_records_total") == {(): 0.0}
