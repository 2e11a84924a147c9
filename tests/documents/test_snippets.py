from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/application-clients.md", "clients/python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_snippets__in_python__name_nothing_that_they_do_not_define(page: str) -> None:
    text = (ROOT / page).read_text()
    snippets = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    assert snippets and "pip install" in text
    for snippet in snippets:
        command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "-"]
        done = subprocess.run(command, input=snippet, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
