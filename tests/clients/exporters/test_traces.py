"""Unchanged exporters: a call's trace is whole in its session's timeline, with the application's root on top.

The scripts name the session only in the way of their instrumentation, and send the gateway only `traceparent`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ENVIRONMENTS
from tests.clients.conftest import CLIENT_SECONDS
from tests.gateway.service import Gateway
from tests.night import cases

FOLDER = Path(__file__).parent
PYTHON = str(ENVIRONMENTS / "python-exporters" / "bin" / "python")
NODE = ENVIRONMENTS / "node-exporters"


def command(name: str) -> list[str]:
    if name == "ai_sdk":
        return ["node", str(shutil.copy(FOLDER / "node" / "with_ai_sdk.mjs", NODE))]
    return [PYTHON, str(FOLDER / "scripts" / f"with_{name}.py")]


# By day one of each language.
@pytest.mark.parametrize(
    "name",
    cases(["openinference", "openllmetry", "logfire", "ai_sdk"], by_day=["openllmetry", "ai_sdk"]),
)
def test_exporter__call_inside_a_root_span__whole_trace_in_its_session(
    installed: None, gateway: Gateway, tmp_path: Path, name: str
) -> None:
    session = f"session of {name}"
    root = gateway.service.base_url()
    done = subprocess.run(
        command(name),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "MODEL": "sandbox/echo",
            "SESSION": session,
            "OPENAI_BASE_URL": f"{root}/api/gateway/v1",
            "OPENAI_API_KEY": gateway.key,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{root}/api/otlp",
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{gateway.key}",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=CLIENT_SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    gateway.service.manage("ship_records", "--drain")

    nodes = shown(gateway, f"sessions/{session}/timeline")["nodes"]

    assert [node["name"] for node in nodes if node["depth"] == 0] == ["handle turn"]
    assert nodes[0]["name"] == "handle turn"
    kinds = [node["kind"] for node in nodes]
    assert (kinds.count("request"), kinds.count("attempt")) == (1, 1)
    # The instrumentation's own span of the call is beside or above the gateway's.
    assert kinds.count("span") > 1
    trace = shown(gateway, f"traces/{nodes[0]['trace_id']}")
    assert trace["sessions"] == [session]
    assert trace["nodes"] == nodes


def shown(gateway: Gateway, path: str) -> dict[str, Any]:
    answer = gateway.manage("GET", path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
