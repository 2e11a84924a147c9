from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.analytics_report import QueryTimes, QuestionTimes, Report, explained, markdown, picture, write
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


def test_figures_become_a_table_and_a_picture(tmp_path: Path) -> None:
    fast = QuestionTimes(
        "Sessions", "newest", 60, 8.4, 12.0, 40.0, 5.2, 2.0, [QueryTimes("sessions.list", 1.0, 4.0, 3.2)], {}
    )
    slow = QuestionTimes("Search", "a <word>", 60, 250.0, 900.0, 1500.0, None, 2.0, [], {"503": 2})
    report = Report(1_000_000, 90, 30, 50.0, None, None, [("requests", 1_000_000, 54_321_000)], [fast, slow], "machine")
    text = markdown(report)
    assert "| Sessions: newest | 8 | 12 | 40 | 5 | 2 | 0 |" in text
    assert "| Search: a <word> | 250 | 900 | 1500 | - | 2 | 2 of 503 |" in text
    assert "| requests | 1,000,000 | 54.3 |" in text
    assert "(20,000 a second)" in text
    assert "| Sessions: newest | sessions.list | 1.00 | 4 | 3 |" in explained(report)
    assert "a <word>" in _texts(picture(report))

    page = tmp_path / "page.md"
    page.write_text("# Performance\n\nBefore.\n")
    write(page, report)
    write(page, report)
    assert page.read_text().count("| Sessions: newest |") == 1
    assert page.read_text().startswith("# Performance\n\nBefore.\n")
