"""Prompts of Langfuse, as its API answers them (https://langfuse.com/docs/prompt-management/data-model)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.configuration.origins.prompts import content_of, entries_of, label_of, messages_of
from gateway.configuration.origins.remaining import Imported, Remaining, number_of
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from prompts.content.messages import INCLUDE
from prompts.models import LATEST

# A version that includes another prompt (https://langfuse.com/docs/prompt-management/features/composability).
_INCLUDE = re.compile(r"\s*@@@langfusePrompt:name=([^|@]+)\|(version|label)=([^|@]+)@@@\s*")
_PRODUCTION = "production"
_BOOKKEEPING = (
    "id",
    "createdAt",
    "updatedAt",
    "createdBy",
    "projectId",
    "isActive",
    "resolutionGraph",
    "lastUpdatedAt",
)
REASONS: Mapping[str, str] = {
    "*.tags.*": "prompts have no tags: put them into the description",
    "*.config.*": "settings of an application of its own stay with the application",
}


def read(values: Any) -> Imported:
    remaining, given = entries_of(values, "versions of prompts", REASONS)
    prompts: dict[str, dict[str, Any]] = {}
    for place in sorted(range(len(given)), key=lambda place: _number(given[place], place)):
        _read_version(remaining, str(place), prompts)
    for prompt in prompts.values():
        _finish(prompt)
    return Imported({"prompts": prompts} if prompts else {}, remaining.told())


def _number(given: Mapping[str, Any], place: int) -> int:
    number = number_of(given.get("version"))
    if isinstance(number, int):
        return number
    problem = "Is needed: the API's list of prompts has no contents, only its answer to a version does."
    raise InvalidConfigurationError([Problem((place, "version"), problem)])


def _read_version(remaining: Remaining, place: str, prompts: dict[str, dict[str, Any]]) -> None:
    name, number = remaining.take_text(place, "name"), remaining.take_number(place, "version")
    if not name:
        raise InvalidConfigurationError([Problem((place, "name"), "Is needed.")])
    for field in _BOOKKEEPING:
        remaining.take(place, field)
    version = {"number": number, **_content(remaining, place)}
    if not version.get("messages") and not version.get("system_prompt"):
        remaining.note((place,), f"version {number} of {name} has no text, and is left out")
        return
    prompt = prompts.setdefault(name, {"versions": [], "labels": {}})
    if any(one["number"] == number for one in prompt["versions"]):
        raise InvalidConfigurationError([Problem((place, "version"), f"Version {number} of {name} is there twice.")])
    prompt["versions"].append(version)
    for label in remaining.take_list(place, "labels"):
        if label != LATEST and (found := label_of(remaining, (place, "labels"), str(label))):
            prompt["labels"][found] = number


def _content(remaining: Remaining, place: str) -> dict[str, Any]:
    remaining.take(place, "type")
    text = remaining.take(place, "prompt")
    path: Path = (place, "prompt")
    if isinstance(text, str):
        given: list[Any] = [_as_message({"role": "system", "content": text})] if text.strip() else []
    elif isinstance(text, list):
        given = [*map(_as_message, text)]
    else:
        raise InvalidConfigurationError([Problem(path, "Must be a text or a list of messages.")])
    messages = messages_of(remaining, path, given, str)
    message = remaining.take_text(place, "commitMessage")
    return content_of(remaining, (place,), messages, parameters=(place, "config"), message=message)


def _as_message(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    content = given.get("content")
    whole = _INCLUDE.fullmatch(content) if isinstance(content, str) else None
    if whole is not None:
        return {INCLUDE: f"{whole[1]}@{whole[3]}"}
    return {name: value for name, value in given.items() if name != "type" or value != "chatmessage"}


def _finish(prompt: dict[str, Any]) -> None:
    numbers = [one["number"] for one in prompt["versions"]]
    # What applications get that name no label.
    prompt["active_version"] = prompt["labels"].get(_PRODUCTION, numbers[-1])
