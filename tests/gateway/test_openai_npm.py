"""The official openai npm SDK, unchanged: only base URL and key are set. The tests need node and npm, and fail without
them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.service import Gateway

SOURCE = Path(__file__).parent / "node"
MODEL = "openai_compatible/echo"


@pytest.fixture(scope="module")
def node_folder() -> Path:
    """Returns the folder of the SDK, kept in the virtual environment so that only the first run downloads it."""
    package = json.loads((SOURCE / "package.json").read_text())
    version = package["dependencies"]["openai"]
    folder = Path(sys.prefix) / f"node-openai-{version}"
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "sdk.mjs"):
        shutil.copy(SOURCE / name, folder / name)
    if not (folder / "node_modules" / "openai" / "package.json").exists():
        command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--no-package-lock", f"openai@{version}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def seen(node_folder: Path, sandboxed: Gateway) -> dict[str, Any]:
    """The script's output: one run of it serves many assertions."""
    base_url = f"{sandboxed.service.base_url()}/api/gateway/v1"
    command = ["node", "sdk.mjs", base_url, sandboxed.key, MODEL]
    done = subprocess.run(command, cwd=node_folder, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_npm_sdk__plain_and_streamed__give_the_same_text(seen: dict[str, Any]) -> None:
    assert seen["text"]
    assert seen["streamed"] == seen["text"]
    assert seen["chunksWithUsage"] == 1
    assert seen["usage"]["total_tokens"] > 0


def test_npm_sdk__headers__are_visible(seen: dict[str, Any]) -> None:
    assert seen["provider"] == "openai_compatible"
    assert seen["requestId"]


def test_npm_sdk__tools__are_called_whole_and_streamed(seen: dict[str, Any]) -> None:
    assert seen["finish"] == "tool_calls"
    for call in (seen["call"], seen["streamedCall"]):
        assert call["name"] == "get_weather"
        assert isinstance(json.loads(call["arguments"])["city"], str)


def test_npm_sdk__json_schema__is_satisfied(seen: dict[str, Any]) -> None:
    assert isinstance(seen["shaped"]["n"], int)


def test_npm_sdk__error__carries_status_code_and_id(seen: dict[str, Any]) -> None:
    assert seen["error"]["status"] == 400
    assert (seen["error"]["code"], seen["error"]["type"]) == ("invalid_value", "invalid_request_error")
    assert seen["error"]["requestID"]
