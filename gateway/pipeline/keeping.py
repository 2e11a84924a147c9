"""Keeps requests to the files that their own project has had a provider keep.

Projects may share a provider's account, whose ids stand in logs and exports. A request goes only to integrations that
keep for the project what it names, or whose account no other project uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import DatabaseError, InterfaceError

from core.errors import NotFoundError, ServiceUnavailableError
from core.processes.database_threads import in_database_thread
from gateway.pipeline.context import Attempt, RequestState
from gateway.protocol.kept_fields import Kept, Reference, may_name_file, references_of
from gateway.selectors import keepers_of
from gateway.snapshot.project import ProjectSnapshot
from integrations.providers.base import Credentials

_MAX_KNOWN = 5000
_SHOWN_CHARACTERS = 100
# What the gateway notes as it is made. The ids of all else are given out in answers or made at the vendor, nobody has
# noted them, and a refusal would end conversations that are the project's own.
NOTED = frozenset({Kept.FILE})
Keepers = frozenset[int | None]


async def keeping(state: RequestState, body: bytes, attempts: list[Attempt]) -> list[Attempt]:
    """Returns the attempts at integrations whose account keeps for the project what the client's `body` names. Raises
    NotFoundError (404) where none does."""
    if not may_name_file(body):
        return attempts
    references = [one for one in references_of(body, state.surface.operation) if one.kind in NOTED]
    if references and not all(attempt.credentials.own_account for attempt in attempts):
        known = await _known(state.snapshot, references)
        for reference in references:
            attempts = [one for one in attempts if keeps(one.credentials, reference, known)]
            if not attempts:
                raise not_kept(reference)
    return attempts


def keeps(credentials: Credentials, reference: Reference, known: dict[str, Keepers]) -> bool:
    """Returns whether a request of the project may name it to the provider. `known` are the keepers of files."""
    return credentials.own_account or credentials.integration_id in known.get(reference.id, ())


def not_kept(reference: Reference) -> NotFoundError:
    shown = reference.id[:_SHOWN_CHARACTERS]
    return NotFoundError(
        f"{reference.field}: this project has no {reference.kind} {shown!r}. If no other project uses the provider's"
        " account, say so in the integration's own_account: requests may then name what was made elsewhere",
        details={reference.field: [f"unknown {reference.kind}"]},
    )


async def _known(snapshot: ProjectSnapshot, references: Iterable[Reference]) -> dict[str, Keepers]:
    """Returns the integrations that keep the files among the references. Those that the snapshot does not know are
    looked up, as a key is that it does not know."""
    files = snapshot.kept_files
    asked = {one.id for one in references} - files.keys()
    if asked:
        if len(files) >= _MAX_KNOWN:
            files.clear()
        try:
            files.update(await in_database_thread(keepers_of, snapshot.project_id, asked))
        except (DatabaseError, InterfaceError) as error:
            raise ServiceUnavailableError("The files of the project cannot be looked up now; try again") from error
    return files
