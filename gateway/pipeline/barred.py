"""The attempts that are pointless after a failure.

These are attempts with a model that refused the request, wherever it is served, and those with a vendor account whose
quota is used up.
"""

from __future__ import annotations

from gateway.pipeline.context import SUBSTITUTE, Attempt
from integrations.providers.errors import MODEL_REFUSALS, FailureKind, ProviderError


class Barred:
    __slots__ = ("_entries", "_integrations", "_names")

    def __init__(self) -> None:
        self._entries: set[int] = set()
        self._names: set[str] = set()
        self._integrations: set[int] = set()

    def note(self, failure: ProviderError, attempt: Attempt) -> None:
        if failure.kind in MODEL_REFUSALS:
            # The next model has to be one that the client named: the project's substitutes are for providers that fail.
            self._entries |= {attempt.entry, SUBSTITUTE}
            self._names.add(_name_of(attempt))
        elif failure.kind is FailureKind.QUOTA:
            self._integrations.add(attempt.target.integration_id)

    def holds(self, attempt: Attempt) -> bool:
        return (
            attempt.entry in self._entries
            or attempt.target.integration_id in self._integrations
            or (bool(self._names) and _name_of(attempt) in self._names)
        )


def _name_of(attempt: Attempt) -> str:
    return attempt.model.rpartition("/")[2].lower()
