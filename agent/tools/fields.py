from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from agent.tools.base import Arguments
from analytics.request_log.record import Operation

# The maximum length of an id in characters; stored ids are shorter.
ID_CHARACTERS = 1024

SessionId = Annotated[str, Meta(min_length=1, max_length=ID_CHARACTERS, description="Id of a session, exactly.")]
RequestId = Annotated[UUID, Meta(description="Id of a request, as lists and searches tell it.")]
OfSession = Annotated[str, Meta(max_length=ID_CHARACTERS, description="Only of this session, exactly.")]
OfUser = Annotated[str, Meta(max_length=ID_CHARACTERS, description="Only of this end user's id, exactly.")]
OfModel = Annotated[
    str, Meta(max_length=ID_CHARACTERS, description="Only answered by this model, exactly, e.g. gpt-4o-mini.")
]
OfOperation = Annotated[
    Operation | None, Meta(description="Only requests that came in this protocol, e.g. embeddings.")
]
OfProvider = Annotated[str, Meta(max_length=ID_CHARACTERS, description="Only answered by this provider, e.g. openai.")]


class OneSession(Arguments, kw_only=True, frozen=True):
    session_id: SessionId
