"""Fetches what an adapter needs before it can write its request: files by address, an access token."""

from __future__ import annotations

from msgspec.structs import replace

from gateway.pipeline.context import Attempt, RequestState
from gateway.runtime import Runtime
from integrations.errors import MediaBusyError, MediaError
from integrations.providers.base import NOTHING, ChatRequest
from integrations.providers.errors import UnsupportedParameterError


async def prepared(runtime: Runtime, request: ChatRequest, attempt: Attempt, state: RequestState) -> ChatRequest:
    """Returns the request with what its adapter needs. A file is fetched once, however many providers are tried.

    Raises MediaError (400) or MediaBusyError (503) for the first choice; for a fallback a file that cannot be had is a
    reason to pass it over.
    """
    needs = attempt.adapter.needs(request, attempt.credentials)
    if needs is NOTHING:
        return request
    media = state.routing.media
    missing = [url for url in needs.media if url not in media]
    if missing:
        try:
            media.update(await runtime.media.fetch(missing))
        except (MediaError, MediaBusyError) as error:
            if attempt.is_fallback:
                raise UnsupportedParameterError("messages", error.message) from error
            raise
    token = await runtime.tokens.token_for(attempt.credentials) if needs.access_token else ""
    return replace(request, media=media, access_token=token)
