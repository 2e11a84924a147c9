from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from gateway.experiments.errors import invalid
from gateway.tables.experiment import LABELS
from prompts.models import PromptVersion


@dataclass(frozen=True, slots=True)
class NewCandidate:
    """Fields that are empty or None stay as in the past request. An `application` sends its answers itself."""

    version_id: UUID | None = None
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    application: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate with the names of the time when the experiment was made; ids are texts, empty without a version."""

    label: str
    version_id: str = ""
    prompt_config_id: str = ""
    prompt_name: str = ""
    prompt_version: int = 0
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    application: str = ""

    @property
    def title(self) -> str:
        if self.application:
            return self.application
        parts = [f"{self.prompt_name} version {self.prompt_version}"] if self.version_id else []
        parts += [self.model] if self.model else []
        parts += [f"temperature {self.temperature:g}"] if self.temperature is not None else []
        parts += [f"at most {self.max_tokens} tokens"] if self.max_tokens is not None else []
        return ", ".join(parts) or "as it was"


def resolved(project_id: UUID, given: Sequence[NewCandidate]) -> list[Candidate]:
    """Raises ValidationError if two are the same, or the project does not have a version."""
    versions = _versions(project_id, [new.version_id for new in given if new.version_id is not None])
    for index, new in enumerate(given):
        if new in given[:index]:
            raise invalid("candidates", index, "Is the same as an earlier candidate.")
        if new.version_id is not None and new.version_id not in versions:
            raise invalid("candidates", index, "The project has no such version.", "version_id")
        if new.application and new != NewCandidate(application=new.application):
            raise invalid("candidates", index, "The application's answers have no other fields.", "application")
    return [_candidate(label, new, versions) for label, new in zip(LABELS, given, strict=False)]


def candidates_of(stored: Iterable[Mapping[str, Any]]) -> list[Candidate]:
    return [Candidate(**fields) for fields in stored]


def stored_form(candidates: Iterable[Candidate]) -> list[dict[str, Any]]:
    return [asdict(candidate) for candidate in candidates]


def _versions(project_id: UUID, ids: Sequence[UUID]) -> dict[UUID, PromptVersion]:
    rows = PromptVersion.objects.filter(config__project_id=project_id, pk__in=ids).select_related("config")
    return {row.pk: row for row in rows}


def _candidate(label: str, new: NewCandidate, versions: Mapping[UUID, PromptVersion]) -> Candidate:
    version = versions[new.version_id] if new.version_id is not None else None
    return Candidate(
        label=label,
        version_id=str(version.pk) if version else "",
        prompt_config_id=str(version.config_id) if version else "",
        prompt_name=version.config.name if version else "",
        prompt_version=version.number if version else 0,
        model=new.model,
        temperature=new.temperature,
        max_tokens=new.max_tokens,
        application=new.application,
    )
