from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pages import PageTimes, markdown
from benchmarks.pages_assets import asset_bytes
from benchmarks.targets.base import ROOT
from core.ui.navigation import GROUPS


@pytest.mark.timeout(1200)
def test_every_page_is_opened_over_a_small_history(tmp_path: Path) -> None:
    """The benchmark runs with an engine and a database of its own, whatever the suite uses."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CLICKHOUSE_URL", "VAR_DIR"}}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages", "--requests", "20_000", "--calls", "1", "--data", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    names = {line.split(" | ")[0].removeprefix("| ") for line in done.stdout.splitlines() if line.startswith("| ")}
    assert {"index", "analytics_requests_changelist", "analytics_requests_detail", "sessions", "usage"} <= names
    assert names - {"Page"} >= {"rollouts", "limits", "settings", "members", "audit", "tables"} & {
        entry.url_name for group in GROUPS for entry in group.entries
    }


def test_times_become_a_table() -> None:
    page = PageTimes("index", 43_000, 11_000, 24_000, [10.0, 20.0], [100.0, 300.0], late=1, own_cpu=60, engine_cpu=200)
    assert "| index | 15 | 20 | 200 | 300 | 400 | 60 | 200 | 43 | 11 | 24 | 1 | 0 |" in markdown([page], 1000, "24h")


def test_assets__of_a_page__count_imported_modules_once() -> None:
    one = '<link rel="stylesheet" href="/static/core/ui/ui.css"><script type="module" src="/static/core/ui/frame.js">'
    scripts, styles = asset_bytes(one)
    folder = ROOT / "core" / "static" / "core" / "ui"
    assert styles == (folder / "ui.css").stat().st_size
    assert scripts >= sum((folder / name).stat().st_size for name in ("frame.js", "plot.js", "panels.js"))
    assert asset_bytes(one + '<script type="module" src="/static/core/ui/plot.js">') == (scripts, styles)
