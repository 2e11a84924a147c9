"""Has Claude's hosts count the tokens of a prompt, which they charge nothing for
(https://platform.claude.com/docs/en/build-with-claude/token-counting)."""

from __future__ import annotations

import msgspec
from typing_extensions import override

from integrations.providers.anthropic.finish import unusable
from integrations.providers.anthropic.forwarding import HOSTS, MessagesForwarder
from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.usage import Usage


class _Count(msgspec.Struct):
    input_tokens: int


_decode = msgspec.json.Decoder(_Count).decode


class CountForwarder(MessagesForwarder):
    """A native adapter (`integrations.native`) of the count of tokens. Its answers are no chat completions."""

    @override
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        built = super().build_request(request, credentials)
        return msgspec.structs.replace(built, url=f"{built.url}/count_tokens")

    @override
    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unusable("the answer is not a count of tokens", provider=self.provider) from error
        return ParsedResponse(body, request.model, "", Usage())

    @override
    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


COUNTERS = {adapter.provider: CountForwarder(adapter) for adapter in HOSTS}
