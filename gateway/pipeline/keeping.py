"""Restricts a request to what a provider keeps for the request's own project.

Projects may share a provider's account, whose ids stand in logs and exports. A request that names such an id goes only
to integrations that keep it for the project, or whose account no other project uses. Files are known by their uploads,
ids in answers by notes (`gateway.runtime.kept_ids`). All else is made at the vendor alone, and the gateway cannot know
for whom.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import DatabaseError, InterfaceError

from core.errors import NotFoundError, ServiceUnavailableError
from core.processes.database_threads import in_database_thread
from core.redis.failures import REDIS_ERRORS
from gateway.pipeline.context import Attempt, RequestState
from gateway.protocol.kept_fields import Reference, is_of_responses, references_of
from gateway.runtime.runtime import Runtime
from gateway.selectors import keepers_of
from gateway.snapshot.project import ProjectSnapshot
from integrations.providers.base import Credentials
from integrations.providers.given import Given, Kept
from integrations.providers.native import native_adapter

_MAX_KNOWN = 5000
_SHOWN_CHARACTERS = 100
_GIVEN_OUT = frozenset({Kept.RESPONSE, Kept.ITEM, Kept.CONTAINER, Kept.AUDIO})
Keepers = Mapping[Given, frozenset[int | None]]


async def keeping(runtime: Runtime, state: RequestState, body: bytes, attempts: list[Attempt]) -> list[Attempt]:
    if all(one.credentials.own_account for one in attempts):
        return attempts
    operation = state.surface.operation
    references = references_of(body, operation)
    if not references:
        return attempts
    known = await keepers(runtime, state.snapshot, references)
    first = attempts[0]
    for reference in references:
        attempts = [
            one
            for one in attempts
            if keeps(one.credentials, reference, known) or not _reads(one.provider, operation, reference)
        ]
        if not attempts:
            raise not_kept(reference)
    return attempts if attempts[0] is first else [attempts[0].as_first(), *attempts[1:]]


def _reads(provider: str, operation: str, reference: Reference) -> bool:
    return not is_of_responses(reference, operation) or native_adapter(provider, operation) is not None


def keeps(credentials: Credentials, reference: Reference, known: Keepers) -> bool:
    return credentials.own_account or credentials.integration_id in known.get(reference.given, ())


def not_kept(reference: Reference) -> NotFoundError:
    shown = reference.id[:_SHOWN_CHARACTERS]
    return NotFoundError(
        f"{reference.field}: this project has no {reference.kind} {shown!r}. If no other project uses the provider's"
        " account, say so in the integration's own_account: requests may then name what was made elsewhere",
        details={reference.field: [f"unknown {reference.kind}"]},
    )


async def keepers(runtime: Runtime, snapshot: ProjectSnapshot, references: Collection[Reference]) -> Keepers:
    files = {one.id for one in references if one.kind is Kept.FILE}
    given_out = {one.given for one in references if one.kind in _GIVEN_OUT}
    known: dict[Given, frozenset[int | None]] = {}
    if files:
        found = await _keepers_of(snapshot, files)
        known |= {(Kept.FILE, one): found[one] for one in files if one in found}
    if given_out:
        try:
            known |= await runtime.kept_ids.keepers(snapshot.id_text, given_out)
        except REDIS_ERRORS as error:
            raise _unknown("What the project may name") from error
    return known


async def _keepers_of(snapshot: ProjectSnapshot, asked: set[str]) -> Mapping[str, frozenset[int | None]]:
    files = snapshot.kept_files
    unknown = asked - files.keys()
    if unknown:
        if len(files) >= _MAX_KNOWN:
            files.clear()
        try:
            files.update(await in_database_thread(keepers_of, snapshot.project_id, unknown))
        except (DatabaseError, InterfaceError) as error:
            raise _unknown("The files of the project") from error
    return files


def _unknown(what: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"{what} cannot be looked up now; try again", headers={"retry-after": "1"})
