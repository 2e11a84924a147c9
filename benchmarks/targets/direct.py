"""The mock without a gateway: the baseline of every latency."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from benchmarks.targets.base import Endpoint, Target


class Direct(Target):
    name: ClassVar[str] = "direct"
    label: ClassVar[str] = "no gateway (mock alone)"

    @override
    def version(self) -> str:
        return "-"

    @override
    def start(self, mock_port: int) -> Endpoint:
        return Endpoint(mock_port)
