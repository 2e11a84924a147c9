"""Fetches what an adapter needs before it can write its request: files by address, an access token."""

from __future__ import annotations

from msgspec.structs import replace

from gateway.pipeline.context import Attempt, RequestState
from gateway.runtime import Runtime
from integrations.errors import MediaBusyError, MediaError
from integrations.providers.base import ChatRequest, Needs
from integrations.providers.errors import UnsupportedParameterError


async def prepared(
    runtime: Runtime, request: ChatRequest, needs: Needs, attempt: Attempt, state: RequestState
) -> ChatRequest:
    """The request with what the adapter asked for. A file is fetched once, however many providers are tried.

    Raises MediaError (400) or MediaBusyError (503) for the first choice; for a fallback a file that cannot be had is a
    reason to pass it over.
    """
    missing = [url for url in needs.media if url not in state.media]
    if missing:
        try:
            state.media.update(await runtime.media.fetch(missing))
        except (MediaError, MediaBusyError) as error:
            if attempt.is_fallback:
                raise UnsupportedParameterError("messages", error.message) from error
            raise
    token = await runtime.tokens.token_for(attempt.credentials) if needs.access_token else ""
    return replace(request, media=state.media, access_token=token)
