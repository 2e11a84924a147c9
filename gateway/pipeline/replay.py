"""Some servers and proxies give a whole answer to a request for a stream: the client gets it as a stream."""

from __future__ import annotations

import msgspec

from gateway.pipeline.context import RequestState
from gateway.pipeline.native import as_chat_completion
from gateway.pipeline.record import estimated_prompt
from gateway.pipeline.uncounted import with_usage
from integrations.providers.base import Adapter, ChatRequest, ParsedResponse
from integrations.providers.errors import FailureKind, NotAStreamError, ProviderError


def whole_completion(
    adapter: Adapter, request: ChatRequest, found: NotAStreamError, state: RequestState
) -> ParsedResponse:
    """Returns the chat completion in a body that came in place of a stream; a native answer is translated.

    Raises ProviderError: `found` if the body is no answer.
    """
    try:
        answer = adapter.parse_response(request, found.body)
    except ProviderError as failure:
        raise (found if failure.kind is FailureKind.UNUSABLE else failure) from None
    if state.answer.is_native:
        completion = as_chat_completion(state, answer.body, stream=False)
        if not completion:
            raise found
        state.answer.is_native = False
        answer = msgspec.structs.replace(answer, body=completion)
    return with_usage(answer, estimated_prompt(state), None)
