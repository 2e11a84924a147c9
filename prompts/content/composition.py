"""Prompts that include others: a message `{"prompt": "style@production"}` stands for that prompt's messages.

Includes are resolved when a version is saved, which refuses invalid ones, and when a worker reads its configuration;
never during a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prompts.content.messages import INCLUDE, INSTRUCTION_ROLES, MAX_MESSAGES
from prompts.content.templating import MAX_RENDERED_BYTES, RoleAndText
from prompts.errors import InvalidVersionError
from prompts.models import LATEST, PromptConfig, PromptLabel, PromptVersion

MAX_DEPTH = 5
"""The number of prompts that may stand within each other, the outermost one not counted."""

_SEPARATOR = "@"
_MAX_DIGITS = 9


class _IncludeError(Exception):
    pass


@dataclass(slots=True)
class Composition:
    """The texts of a version with those of its includes, and the variables of all.

    If two prompts declare a variable, the outer one's declaration counts. `included` has each included prompt's version
    number, by config and name.
    """

    texts: list[RoleAndText] = field(default_factory=list)
    variables: list[dict[str, Any]] = field(default_factory=list)
    included: dict[tuple[UUID, str], int] = field(default_factory=dict)
    _bytes: int = 0

    def add_text(self, role: str, text: str) -> None:
        self._bytes += len(text.encode("utf-8", "replace"))
        self.texts.append((role, text))
        if len(self.texts) > MAX_MESSAGES:
            raise _IncludeError(f"With all included prompts there are more than {MAX_MESSAGES} messages.")
        if self._bytes > MAX_RENDERED_BYTES:
            raise _IncludeError(f"With all included prompts there are more than {MAX_RENDERED_BYTES} bytes of text.")

    def add_variables(self, variables: Sequence[Mapping[str, Any]]) -> None:
        known = {variable["name"] for variable in self.variables}
        self.variables += [dict(variable) for variable in variables if variable["name"] not in known]


class Library:
    def __init__(self, project_id: UUID) -> None:
        self._project_id = project_id
        self._versions: dict[str, PromptVersion | None] = {}

    def find(self, reference: str) -> PromptVersion | None:
        """`reference` is `name`, `name@label`, `name@3` or `name@latest`."""
        if reference not in self._versions:
            self._versions[reference] = self._read(reference)
        return self._versions[reference]

    def _read(self, reference: str) -> PromptVersion | None:
        name, separator, pin = reference.rpartition(_SEPARATOR)
        names = [reference, name] if separator else [reference]
        configs = {row.name: row for row in PromptConfig.objects.for_project(self._project_id).filter(name__in=names)}
        versions = PromptVersion.objects.select_related("config")
        if reference in configs:
            active_id = configs[reference].active_version_id
            return None if active_id is None else versions.get(pk=active_id)
        config = configs.get(name) if separator else None
        if config is None:
            return None
        labelled = PromptLabel.objects.filter(config=config, name=pin).values_list("version_id", flat=True).first()
        if labelled is not None:
            return versions.get(pk=labelled)
        if pin == LATEST:
            return versions.filter(config=config, number=config.last_version_number).first()
        is_number = pin.isascii() and pin.isdecimal() and len(pin) <= _MAX_DIGITS
        return versions.filter(config=config, number=int(pin)).first() if is_number else None


def is_composed(messages: Sequence[Any]) -> bool:
    return any(isinstance(message, Mapping) and INCLUDE in message for message in messages)


def compose(
    library: Library,
    config_id: UUID | None,
    messages: Sequence[Mapping[str, Any]],
    variables: Sequence[Mapping[str, Any]],
) -> Composition:
    """Returns a version's messages with everything they include, instructions first.

    `config_id` is None for a config that is not stored yet. Raises InvalidVersionError with the message's path:
    `messages.0.prompt`.
    """
    made = Composition()
    made.add_variables(variables)
    chain = (config_id,) if config_id is not None else ()
    for index, message in enumerate(messages):
        try:
            _add(made, library, message, chain, depth=0)
        except _IncludeError as error:
            raise InvalidVersionError({f"messages.{index}.{INCLUDE}": [str(error)]}) from error
    # The sort is stable: messages of one kind keep their order.
    made.texts.sort(key=lambda message: message[0] not in INSTRUCTION_ROLES)
    return made


def _add(
    made: Composition, library: Library, message: Mapping[str, Any], chain: tuple[UUID, ...], *, depth: int
) -> None:
    reference = message.get(INCLUDE)
    if reference is None:
        made.add_text(message["role"], message["content"])
        return
    version = library.find(reference)
    if version is None:
        raise _IncludeError(f"The project has no prompt {reference!r}, or it has no version of that label or number.")
    if version.config_id in chain:
        raise _IncludeError(f"{reference!r} includes itself.")
    if depth == MAX_DEPTH:
        raise _IncludeError(f"More than {MAX_DEPTH} prompts are nested in each other, down to {reference!r}.")
    made.included[version.config_id, version.config.name] = version.number
    made.add_variables(version.variables)
    inner = version.messages or [{"role": "system", "content": version.system_prompt}]
    for one in inner:
        _add(made, library, one, (*chain, version.config_id), depth=depth + 1)
