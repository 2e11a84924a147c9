"""https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference"""

from __future__ import annotations

from integrations.providers.google.forwarding import CountForwarder, GeminiForwarder
from integrations.providers.vertex.adapter import ADAPTER
from integrations.providers.vertex.publishers import GOOGLE, publisher_model


class VertexForwarder(GeminiForwarder):
    def __init__(self) -> None:
        super().__init__(ADAPTER, vertex=True)

    def serves(self, model: str) -> bool:
        return publisher_model(model).publisher == GOOGLE


class VertexCounter(CountForwarder):
    def __init__(self) -> None:
        super().__init__(ADAPTER, vertex=True)

    def serves(self, model: str) -> bool:
        return publisher_model(model).publisher == GOOGLE


FORWARDERS = {ADAPTER.provider: VertexForwarder()}
COUNTERS = {ADAPTER.provider: VertexCounter()}
