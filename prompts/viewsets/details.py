from __future__ import annotations

from typing import Any
from uuid import UUID

from core.wire.shown import shown
from prompts.diff.contents import diff_contents
from prompts.selectors import get_version, version_content
from prompts.serializers import diff_body, version_entry
from prompts.usage import version_usage


def version_detail(project_id: UUID, config_id: UUID, version_id: UUID) -> dict[str, Any]:
    version = get_version(project_id, config_id, version_id)
    usage = version_usage(project_id, config_id, version.number)
    return {**version_entry(version), "usage": usage and shown(usage)}


def version_diff(project_id: UUID, config_id: UUID, version_id: UUID, other_id: UUID) -> dict[str, Any]:
    before = get_version(project_id, config_id, version_id)
    after = get_version(project_id, config_id, other_id)
    return diff_body(before, after, diff_contents(version_content(before), version_content(after)))
