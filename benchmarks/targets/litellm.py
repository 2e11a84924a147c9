"""LiteLLM's proxy with one worker, its master key on, no database; and the same with its native path."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from typing import ClassVar

from benchmarks import payloads, processes
from benchmarks.targets.base import Endpoint, PythonPeer, UnavailableError

_KEY = "sk-benchmark-1234"
_CONFIG = """
model_list:
  - model_name: mock
    litellm_params:
      model: {model}
      api_base: http://127.0.0.1:{mock_port}{upstream_path}
      api_key: sk-mock
      rust: {native}
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
  set_verbose: false
"""


class LiteLLM(PythonPeer):
    name: ClassVar[str] = "litellm"
    label: ClassVar[str] = "LiteLLM proxy (1 worker)"
    # Of the releases since 1.107.0, which was compromised and withdrawn, the newest whose parts of the proxy are all
    # published as packages.
    requirement: ClassVar[str] = "litellm[proxy]==1.108.7"
    distribution: ClassVar[str] = "litellm"
    model: ClassVar[str] = "openai/mock"
    upstream_path: ClassVar[str] = "/v1"
    native: ClassVar[bool] = False

    def start(self, mock_port: int) -> Endpoint:
        self.workspace.mkdir(parents=True, exist_ok=True)
        config, port = self.workspace / "config.yaml", processes.free_port()
        values = {"model": self.model, "upstream_path": self.upstream_path, "native": json.dumps(self.native)}
        config.write_text(_CONFIG.format(mock_port=mock_port, key=_KEY, **values))
        command = [str(self.folder / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
        environment = {
            "LITELLM_LOG": "ERROR",
            "LITELLM_MODE": "PRODUCTION",
            # Without this variable the start downloads a price list.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_PROXY": "127.0.0.1",
            # The version takes no note of `rust: true` in the configuration, which its documentation names.
            "LITELLM_RUST": json.dumps(self.native),
        }
        self._launch(
            [*command, "--port", str(port), "--num_workers", "1"],
            f"http://127.0.0.1:{port}/health/liveliness",
            environment,
        )
        return Endpoint(port, headers={"authorization": f"Bearer {_KEY}"})


class LiteLLMNative(LiteLLM):
    """Serves Anthropic's Messages API natively before an Anthropic provider; chat completions and other providers take
    the path in Python with or without the switch."""

    name: ClassVar[str] = "litellm-native"
    label: ClassVar[str] = "LiteLLM proxy, native (Rust), Messages"
    model: ClassVar[str] = "anthropic/mock"
    upstream_path: ClassVar[str] = ""
    native: ClassVar[bool] = True

    def start(self, mock_port: int) -> Endpoint:
        endpoint = replace(super().start(mock_port), path="/v1/messages")
        self._check(endpoint)
        return endpoint

    def _check(self, endpoint: Endpoint) -> None:
        """Raises UnavailableError if the answer has no mark of the native path: the proxy falls back to Python
        silently."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{endpoint.port}{endpoint.path}",
            data=payloads.request_body(endpoint.model, protocol=payloads.protocol_of(endpoint.path)),
            headers={"content-type": "application/json", **endpoint.headers},
        )
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - a loopback http address
            if response.headers.get("x-litellm-rust") != "true":
                raise UnavailableError("this version does not serve Messages natively")
