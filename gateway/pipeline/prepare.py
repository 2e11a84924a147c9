from __future__ import annotations

from collections.abc import Mapping

from gateway.pipeline.context import Attempt, RequestState
from gateway.runtime.runtime import Runtime
from integrations.errors import MediaBusyError, MediaError
from integrations.providers.base import Media, Needs
from integrations.providers.errors import UnsupportedParameterError


async def fetched(
    runtime: Runtime, needs: Needs, attempt: Attempt, state: RequestState
) -> tuple[Mapping[str, Media], str]:
    """Returns files by address, and the access token, empty if none is needed.

    A file is fetched once, however many providers are tried. Raises MediaError (400) or MediaBusyError (503) for the
    first choice; a fallback whose file cannot be had is passed over.
    """
    media = state.routing.media
    missing = [url for url in needs.media if url not in media]
    if missing:
        try:
            state.routing.media = media = {**media, **await runtime.media.fetch(missing)}
        except (MediaError, MediaBusyError) as error:
            if attempt.is_fallback:
                raise UnsupportedParameterError("messages", error.message) from error
            raise
    token = await runtime.tokens.token_for(attempt.credentials) if needs.access_token else ""
    return media, token
