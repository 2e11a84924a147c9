"""One version with its usage, and two versions side by side, in their wire form."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from prompts.diff.contents import diff_contents
from prompts.selectors import get_version, version_content
from prompts.serializers import VersionSerializer, diff_body, usage_body
from prompts.usage import version_usage


def version_detail(project_id: UUID, config_id: UUID, version_id: UUID) -> dict[str, Any]:
    """Returns a version with its usage. Raises ConfigNotFoundError and VersionNotFoundError."""
    version = get_version(project_id, config_id, version_id)
    usage = version_usage(project_id, config_id, version.number)
    return {**VersionSerializer(version).data, "usage": usage_body(usage)}


def version_diff(project_id: UUID, config_id: UUID, version_id: UUID, other_id: UUID) -> dict[str, Any]:
    """Returns the changes from the first version to the second. Raises as `version_detail` does."""
    before = get_version(project_id, config_id, version_id)
    after = get_version(project_id, config_id, other_id)
    return diff_body(before, after, diff_contents(version_content(before), version_content(after)))
