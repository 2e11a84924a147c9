"""Has Claude's hosts count the tokens of a prompt, which they charge nothing for
(https://platform.claude.com/docs/en/build-with-claude/token-counting)."""

from __future__ import annotations

import msgspec

from integrations.providers.anthropic.finish import unusable
from integrations.providers.anthropic.forwarding import HOSTS, VendorForwarder
from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.usage import Usage


class _Count(msgspec.Struct):
    input_tokens: int


_decode = msgspec.json.Decoder(_Count).decode


class CountForwarder(VendorForwarder):
    """A native adapter (`providers/native.py`) of the count of tokens. Its answers are no chat completions."""

    # A request to count has no place for parameters of an answer.
    parameters = frozenset()

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        built = super().build_request(request, credentials)
        return msgspec.structs.replace(built, url=f"{built.url}/count_tokens")

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_count(request, body, provider=self.provider)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


def parse_count(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    """Returns the answer, which is passed on as it came. Raises ProviderError(UNUSABLE) when it holds no count."""
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a count of tokens", provider=provider) from error
    return ParsedResponse(body, request.model, "", Usage())


COUNTERS = {adapter.provider: CountForwarder(adapter) for adapter in HOSTS}
