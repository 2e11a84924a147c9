"""The base of the adapters of operations that no chat completion can express (docs/surfaces.md): embeddings and the
like. Such an adapter reads the client's own request and writes the client's own form of answer."""

from __future__ import annotations

from collections.abc import Sequence

from integrations.providers.base import ChatRequest, ParsedResponse, StreamTranslator
from integrations.providers.common.forwarder import Forwarder
from integrations.providers.errors import UnsupportedParameterError


class OperationForwarder(Forwarder):
    """A native adapter of one operation."""

    def stream(self, request: ChatRequest) -> StreamTranslator:
        raise UnsupportedParameterError("stream", "this operation has no streams", provider=self.provider)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer

    def parts(self, request: ChatRequest) -> Sequence[ChatRequest]:
        """Returns the requests that the provider gets in place of one that is larger than it takes."""
        return (request,)

    def joined(self, request: ChatRequest, answers: Sequence[ParsedResponse]) -> ParsedResponse:
        """Returns the answer to the request, from those to its parts in their order."""
        return answers[0]
