from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.clients.applications.experiment_server import KEY, experiment_server
from tests.clients.clients import ROOT
from tests.waiting import TIMEOUT_SECONDS


def steps() -> list[dict[str, Any]]:
    page = (ROOT / "docs" / "ci.md").read_text()
    (found,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    workflow = yaml.load(found, yaml.BaseLoader)  # noqa: S506  # it makes texts alone; others read `on` as true
    assert workflow["on"]["pull_request"]["paths"] == ["prompts/**"]
    listed: list[dict[str, Any]] = workflow["jobs"]["experiment"]["steps"]
    return listed


def test_workflow__step_of_the_experiment__writes_the_comment_and_the_junit_file(tmp_path: Path) -> None:
    (step,) = [one for one in steps() if one.get("name") == "Experiment"]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "support.md").write_text("Be brief.")
    program = tmp_path / "bin" / "svc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m prompt_gateway_client "$@"\n')
    program.chmod(0o755)
    with experiment_server() as server:
        server.ends_with("worse")
        given = {"URL": server.base_url, "PROJECT_ID": "p", "API_KEY": KEY}
        names = {f"PROMPT_GATEWAY_{name}": value for name, value in given.items()}
        assert set(step["env"]) == set(names)
        path = f"{program.parent}:{os.environ['PATH']}"
        environment = {**names, "PATH": path, "PYTHONPATH": str(ROOT / "clients" / "python" / "src")}
        # Runners start steps so: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )

    assert done.returncode == 1, done.stderr
    assert "**worse**" in (tmp_path / "comment.md").read_text()
    assert (tmp_path / "junit.xml").exists()


def test_workflow__steps__use_standard_actions_and_gh() -> None:
    used = [one["uses"].partition("@")[0] for one in steps() if "uses" in one]
    assert all(name.startswith("actions/") for name in used)
    assert [one["run"].split()[0] for one in steps() if "run" in one] == ["pip", "svc", "gh"]
