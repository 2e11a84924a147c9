from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gateway.demo.conversations import OWN_PROMPTS
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS


def _demo(var_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "demo", *arguments],
        cwd=ROOT,
        env=minimal_environment(var_dir),
        capture_output=True,
        text=True,
        timeout=3 * START_SECONDS,
    )


def test_demo__beside_a_service__plays_every_prompt_and_prints_what_was_recorded(live_service: LiveService) -> None:
    conversations = len(OWN_PROMPTS.read_text(encoding="utf-8").splitlines())

    result = _demo(live_service.var_dir)

    assert result.returncode == 0, result.stderr
    total = re.search(r"^total +(\d+) sessions +(\d+) +(\d+) +([\d.]+) +(\d+)$", result.stdout, re.MULTILINE)
    assert total is not None, result.stdout
    assert int(total.group(1)) == conversations
    assert int(total.group(2)) > conversations
    assert float(total.group(4)) > 0
    assert int(total.group(5)) == 0
    assert f"{conversations}/{conversations}" in result.stderr


def test_demo__no_service__starts_one_and_stops_it(tmp_path: Path) -> None:
    result = _demo(tmp_path / "var", "--limit", "2")

    assert result.returncode == 0, result.stderr
    assert "2 sessions" in result.stdout
    assert not (tmp_path / "var" / "run" / "gateway.url").exists()


def test_demo__provider_that_fails__says_which_and_ends_with_1(live_service: LiveService) -> None:
    result = _demo(live_service.var_dir, "--limit", "1", "--model", "sandbox/error-400")

    assert result.returncode == 1
    assert "greeting: BadRequestError" in result.stderr
    assert "1 of 1 conversations failed" in result.stderr


def test_demo__line_that_is_no_conversation__is_named(live_service: LiveService, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"messages": []}\n{"nothing": 1}\n', encoding="utf-8")

    result = _demo(live_service.var_dir, "--prompts", str(file))

    assert result.returncode == 1
    assert "line 2" in result.stderr
    assert "Traceback" not in result.stderr
