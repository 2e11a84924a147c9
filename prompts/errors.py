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
    """`details` maps fields to messages, with paths such as `variables.0.name`."""

    def __init__(self, details: Mapping[str, Sequence[str]]) -> None:
        field, messages = next(iter(details.items()))
        super().__init__(f"{field}: {messages[0]}", details=details)


ConfigNotFoundError = NotFoundError.kind("prompt_config_not_found", "The project has no such prompt config.")
VersionNotFoundError = NotFoundError.kind("prompt_version_not_found", "The prompt config has no such version.")


class LabelNotFoundError(NotFoundError):
    code = "prompt_label_not_found"

    def __init__(self, label: str) -> None:
        super().__init__(f"The prompt config has no label {label[:_QUOTED_CHARACTERS]!r}.")


class LabelProtectedError(PermissionDeniedError):
    code = "prompt_label_protected"

    def __init__(self, label: str) -> None:
        super().__init__(f"The label {label[:_QUOTED_CHARACTERS]!r} is protected: only administrators change it.")


# Raised where a version is used whose included prompts have changed so that it cannot be.
BrokenIncludeError = ConflictError.kind("prompt_include_broken", "The prompt cannot be used: {}")


class IncludedPromptError(ConflictError):
    code = "prompt_included"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"It is included by the active version of {', '.join(names)}.")


ConfigExistsError = ConflictError.kind("prompt_config_exists", "The project has a prompt config named {!r} already.")
# Raised while a rollout is active, which alone decides which version is served.
RolloutActiveError = ConflictError.kind(
    "rollout_active", "{} while a rollout of the prompt config is active: complete it or roll it back first."
)
NothingToUndoError = ConflictError.kind(
    "nothing_to_undo", "There is no activation to undo: the config serves the version it began with."
)


class VariableError(ApplicationError):
    """The request's variable `variable` is wrong. The message has its name and never its value."""

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
