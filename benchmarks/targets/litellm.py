"""LiteLLM's proxy with one worker, its master key on, no database."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from benchmarks import processes
from benchmarks.targets.base import Endpoint, PythonPeer

_KEY = "sk-benchmark-1234"
_CONFIG = """
model_list:
  - model_name: mock
    litellm_params:
      model: openai/mock
      api_base: http://127.0.0.1:{mock_port}/v1
      api_key: sk-mock
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
  set_verbose: false
"""


class LiteLLM(PythonPeer):
    name: ClassVar[str] = "litellm"
    label: ClassVar[str] = "LiteLLM proxy (1 worker)"
    # The version is not the newest: release 1.107.0 was compromised, and this one is before it.
    requirement: ClassVar[str] = "litellm[proxy]==1.104.0"
    distribution: ClassVar[str] = "litellm"

    @override
    def start(self, mock_port: int) -> Endpoint:
        self.workspace.mkdir(parents=True, exist_ok=True)
        config, port = self.workspace / "config.yaml", processes.free_port()
        config.write_text(_CONFIG.format(mock_port=mock_port, key=_KEY))
        command = [str(self.folder / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
        environment = {
            "LITELLM_LOG": "ERROR",
            "LITELLM_MODE": "PRODUCTION",
            # Without this variable the start downloads a price list.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_PROXY": "127.0.0.1",
        }
        self._launch(
            [*command, "--port", str(port), "--num_workers", "1"],
            f"http://127.0.0.1:{port}/health/liveliness",
            environment,
        )
        return Endpoint(port, headers={"authorization": f"Bearer {_KEY}"})
