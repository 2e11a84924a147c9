from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from core.errors import ValidationError
from prompts.selectors import PromptVersionRecord, numbered_version

_SYSTEM = ("system", "developer")


def requested_version(project_id: UUID, given: Mapping[str, Any]) -> PromptVersionRecord | None:
    """Returns None without `prompt_version`. Checks the variables too, so that an error names its field.

    Raises ValidationError, ConfigNotFoundError, VersionNotFoundError, VariableError.
    """
    number, name = given.get("prompt_version"), given.get("prompt_config")
    if number is None:
        return None
    if not name:
        problem = "Names a version of prompt_config, which is missing."
        raise ValidationError(f"prompt_version: {problem}", details={"prompt_version": [problem]})
    version = numbered_version(project_id, name, number)
    if not any(message.get("role") in _SYSTEM for message in given["messages"]):
        version.template.render(given.get("prompt_variables") or {})
    return version
