from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.targets.base import ROOT


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The benchmark runs with an engine and a database of its own, whatever the suite uses."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CLICKHOUSE_URL", "VAR_DIR"}}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.analytics", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=550, check=False,
    )  # fmt: skip


def _texts(svg: str) -> list[str | None]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.night
@pytest.mark.timeout(1200)
def test_every_question_is_answered_over_a_small_history(tmp_path: Path) -> None:
    data, figures, drawn = tmp_path / "store", tmp_path / "figures.json", tmp_path / "picture.svg"
    common = ("--requests", "20_000", "--data", str(data), "--json", str(figures))
    done = _run(*common, "--calls", "1", "--picture", str(drawn))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(figures.read_text())
    assert {question["name"] for question in report["questions"] if question["failures"]} == set()
    assert len(report["questions"]) > 25
    assert {name: rows for name, rows, _ in report["tables"]}["requests"] == 20_000
    assert report["peak_megabytes"] > 100
    assert "| Search: rare word |" in done.stdout
    assert _texts(drawn.read_text())

    again = _run(*common, "--calls", "1", "--only", "cost daily", "--explain")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "| Metrics, 30 days: cost daily | usage" in again.stdout
    repeated = json.loads(figures.read_text())
    assert [question["name"] for question in repeated["questions"]] == ["cost daily"]
    assert {name: rows for name, rows, _ in repeated["tables"]}["requests"] == 20_000
