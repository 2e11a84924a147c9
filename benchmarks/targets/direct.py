from __future__ import annotations

from typing import ClassVar

from benchmarks.targets.base import Endpoint, Target


class Direct(Target):
    name: ClassVar[str] = "direct"
    label: ClassVar[str] = "no gateway (mock alone)"

    def version(self) -> str:
        return "-"

    def start(self, mock_port: int) -> Endpoint:
        return Endpoint(mock_port)
