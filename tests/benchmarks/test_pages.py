from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pages_assets import asset_bytes
from benchmarks.targets.base import ROOT
from core.ui.navigation import GROUPS


@pytest.mark.night
@pytest.mark.timeout(1200)
def test_every_page_is_opened_over_a_small_history(tmp_path: Path) -> None:
    """The benchmark runs with an engine and a database of its own, whatever the suite uses."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CLICKHOUSE_URL", "VAR_DIR"}}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages", "--requests", "20_000", "--calls", "1", "--data", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    table = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    heading, *pages = table
    names = {row[0] for row in pages}
    assert {"index", "analytics_requests_changelist", "analytics_requests_detail", "sessions", "usage"} <= names
    assert names >= {"rollouts", "limits", "settings", "members", "audit", "tables"} & {
        entry.url_name for group in GROUPS for entry in group.entries
    }
    assert names >= {
        "requests, slowest first",
        "sessions, by cost",
        "review",
        "prompt_editor",
        "rollout_form",
        "evaluator",
        "online_evaluation",
        "evaluator_form",
        "experiment_form",
    }
    for page in pages:
        for column, bound in (("HTML KB", 150), ("Script KB", 60), ("Style KB", 36)):
            assert int(page[heading.index(column)]) <= bound, f"{page[0]} has more {column} than {bound}"


def test_assets__of_a_page__count_imported_modules_once() -> None:
    one = '<link rel="stylesheet" href="/static/core/ui/ui.css"><script type="module" src="/static/core/ui/frame.js">'
    counted = asset_bytes(one)
    folder = ROOT / "core" / "static" / "core" / "ui"
    assert counted.styles == (folder / "ui.css").stat().st_size
    imported = ("frame", "keys", "panels", "plot", "sort")
    assert counted.scripts == sum((folder / f"{name}.js").stat().st_size for name in imported)
    assert asset_bytes(one + '<script type="module" src="/static/core/ui/plot.js">') == counted


def test_assets__of_a_part_that_is_opened__counted_by_themselves() -> None:
    folder = ROOT / "agent" / "static" / "agent" / "panel"
    opener = '<script type="module" src="/static/agent/panel/opener.js"></script>'
    counted = asset_bytes(opener + '<dialog data-source="/x" data-style="/static/agent/panel/page.css"></dialog>')

    assert (counted.scripts, counted.styles) == ((folder / "opener.js").stat().st_size, 0)
    assert counted.later_styles == (folder / "page.css").stat().st_size
    assert counted.later_scripts > sum(path.stat().st_size for path in folder.glob("*.js")) - counted.scripts
    with_page = asset_bytes(opener + '<script type="module" src="/static/agent/panel/page.js"></script>')
    assert with_page.later_scripts == 0
