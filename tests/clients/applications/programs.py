from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.clients import ENVIRONMENTS, ROOT
from tests.waiting import TIMEOUT_SECONDS

_NODE = ["node", str(ENVIRONMENTS / "typescript" / "dist" / "svc.js")]
_PYTHON = [sys.executable, "-m", "prompt_gateway_client"]
RUNS = {
    "python": [*_PYTHON, "experiments", "run"],
    "typescript": [*_NODE, "experiments", "run"],
    "manage": [sys.executable, str(ROOT / "manage.py"), "run_experiment"],
}
PUSHES = {"python": [*_PYTHON, "datasets", "push"], "typescript": [*_NODE, "datasets", "push"]}


@dataclass(frozen=True)
class Done:
    code: int
    found: Any
    told: str


def start(
    command: list[str], *options: str, url: str, key: str, project: str = "p", at: Path | None = None
) -> subprocess.Popen[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "PROMPT_GATEWAY_URL": url,
        "PROMPT_GATEWAY_API_KEY": key,
        "PROMPT_GATEWAY_PROJECT_ID": project,
    }
    if at is not None:
        environment["VAR_DIR"] = str(at / "var")
    return subprocess.Popen(
        [*command, *options],
        cwd=at,
        env={name: value for name, value in environment.items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )


def _heed_interrupts() -> None:
    """Undoes what the parent may have set: shells make background programs ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(child: subprocess.Popen[str], key: str) -> Done:
    """The key must appear in none of the output."""
    out, told = child.communicate(timeout=TIMEOUT_SECONDS)
    assert key not in out + told
    lines = out.splitlines()
    assert len(lines) <= 1, out
    return Done(child.returncode, json.loads(out) if lines else None, told)
