"""The variables that a config's versions take, whichever version is served.

A client sends the same request before, during and after a change of version, so another version's variable is no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db.models import F

from prompts.content.messages import texts_of
from prompts.content.templating import compile_messages
from prompts.models import PromptVersion

LATEST_VERSIONS = 50

# Versions never change. The entries are a few bytes each; the bound is for a worker that runs for years.
_REMEMBERED = 50_000
_names: dict[UUID, frozenset[str]] = {}


def variable_names(project_id: UUID) -> Mapping[UUID, frozenset[str]]:
    """Returns each config's names in its latest 50 versions, with one query, and a second one for new versions."""
    recent = PromptVersion.objects.filter(
        config__project_id=project_id, number__gt=F("config__last_version_number") - LATEST_VERSIONS
    )
    pairs = list(recent.order_by().values_list("config_id", "pk"))
    by_version = _names_of([version_id for _, version_id in pairs])
    found: dict[UUID, frozenset[str]] = {}
    for config_id, version_id in pairs:
        found[config_id] = found.get(config_id, frozenset()) | by_version.get(version_id, frozenset())
    return found


def _names_of(version_ids: list[UUID]) -> dict[UUID, frozenset[str]]:
    found = {version_id: names for version_id in version_ids if (names := _names.get(version_id)) is not None}
    unknown = [version_id for version_id in version_ids if version_id not in found]
    if unknown:
        if len(_names) + len(unknown) > _REMEMBERED:
            _names.clear()
        rows = PromptVersion.objects.filter(pk__in=unknown).values_list("pk", "system_prompt", "messages", "variables")
        for version_id, system_prompt, messages, variables in rows:
            texts = texts_of(system_prompt, messages)
            found[version_id] = _names[version_id] = compile_messages(texts, variables).names
    return found
