"""Failures of the prompts app.

ApplicationError
├── ValidationError
│   └── InvalidVersionError          400, `details` by field of the version
├── NotFoundError
│   ├── ConfigNotFoundError          404
│   ├── LabelNotFoundError           404
│   └── VersionNotFoundError         404
├── PermissionDeniedError
│   └── LabelProtectedError          403
├── ConflictError
│   ├── BrokenIncludeError           409
│   ├── ConfigExistsError            409
│   ├── IncludedPromptError          409
│   ├── RolloutActiveError           409
│   └── NothingToUndoError           409
└── VariableError                    422, of one variable of a template
    ├── MissingVariableError
    ├── InvalidVariableError
    └── UnknownVariableError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import (
    ApplicationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    ValidationError,
)

# Clients choose the names they send, so a message quotes no more characters than a valid name has.
_QUOTED_CHARACTERS = 100


class InvalidVersionError(ValidationError):
    """Raised for an invalid version; `details` holds field → messages, with paths such as `variables.0.name`."""

    def __init__(self, details: Mapping[str, Sequence[str]]) -> None:
        field, messages = next(iter(details.items()))
        super().__init__(f"{field}: {messages[0]}", details=details)


class ConfigNotFoundError(NotFoundError):
    code = "prompt_config_not_found"

    def __init__(self) -> None:
        super().__init__("The project has no such prompt config.")


class VersionNotFoundError(NotFoundError):
    code = "prompt_version_not_found"

    def __init__(self) -> None:
        super().__init__("The prompt config has no such version.")


class LabelNotFoundError(NotFoundError):
    code = "prompt_label_not_found"

    def __init__(self, label: str) -> None:
        super().__init__(f"The prompt config has no label {label[:_QUOTED_CHARACTERS]!r}.")


class LabelProtectedError(PermissionDeniedError):
    code = "prompt_label_protected"

    def __init__(self, label: str) -> None:
        super().__init__(f"The label {label[:_QUOTED_CHARACTERS]!r} is protected: only administrators change it.")


class BrokenIncludeError(ConflictError):
    """Raised where a version is used whose included prompts have changed so that it cannot be."""

    code = "prompt_include_broken"

    def __init__(self, problem: str) -> None:
        super().__init__(f"The prompt cannot be used: {problem}")


class IncludedPromptError(ConflictError):
    """Raised when a prompt is to go that others include."""

    code = "prompt_included"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"It is included by the active version of {', '.join(names)}.")


class ConfigExistsError(ConflictError):
    code = "prompt_config_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"The project has a prompt config named {name!r} already.")


class RolloutActiveError(ConflictError):
    """Raised while a rollout is active, which alone decides which version is served."""

    code = "rollout_active"

    def __init__(self, refused: str) -> None:
        super().__init__(
            f"{refused} while a rollout of the prompt config is active: complete it or roll it back first."
        )


class NothingToUndoError(ConflictError):
    code = "nothing_to_undo"

    def __init__(self) -> None:
        super().__init__("There is no activation to undo: the config serves the version it began with.")


class VariableError(ApplicationError):
    """Raised for the variable `variable` of a request. The message holds the name and never the value."""

    status = 422
    type = "invalid_request_error"

    def __init__(self, variable: str, problem: str) -> None:
        quoted = repr(variable[:_QUOTED_CHARACTERS])
        details = {f"prompt_variables.{variable[:_QUOTED_CHARACTERS]}": [problem[:1].upper() + problem[1:]]}
        super().__init__(f"Variable {quoted} {problem}", details=details)
        self.variable = variable


class MissingVariableError(VariableError):
    code = "missing_variable"


class InvalidVariableError(VariableError):
    code = "invalid_variable"


class UnknownVariableError(VariableError):
    code = "unknown_variable"
