"""Finds managed prompts by id and by name."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from core.lookup.registry import Kind, Match, as_uuid, finds
from prompts.models import PromptConfig


@finds(Kind.PROMPT)
def find_prompts(project_id: UUID, text: str) -> Sequence[Match]:
    own = PromptConfig.objects.for_project(project_id)
    identity = as_uuid(text)
    rows = own.filter(pk=identity) if identity else own.filter(name=text)
    return [Match(Kind.PROMPT, str(row.pk), row.name) for row in rows]
