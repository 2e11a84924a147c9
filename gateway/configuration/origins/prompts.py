from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.configuration.origins.remaining import Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from prompts.content.messages import INCLUDE, INSTRUCTION_ROLES, ROLES
from prompts.content.templating import find_placeholders
from prompts.content.version import MAX_TEMPERATURE, MAX_TOKENS
from prompts.labels import name_problem
from prompts.models import COMMIT_MESSAGE_CHARACTERS

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%[^%]*%\}|@@@langfusePrompt:[^@]*@@@")
_NOT_IN_A_LABEL = re.compile(r"[^a-z0-9._-]+")


def entries_of(values: Any, what: str, reasons: Mapping[str, str]) -> tuple[Remaining, list[Mapping[str, Any]]]:
    given = values.get("data") if isinstance(values, Mapping) and "data" in values else values
    given = [given] if isinstance(given, Mapping) else given
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise InvalidConfigurationError([Problem((), f"Must be a list of {what}.")])
    return Remaining({str(place): one for place, one in enumerate(given)}, reasons), given


def content_of(
    remaining: Remaining, path: Path, messages: Sequence[Mapping[str, str]], *, parameters: Path, message: str = ""
) -> dict[str, Any]:
    found: dict[str, Any] = dict(_texts(messages))
    for name, theirs in (("model", "model"), ("response_format", "response_format"), ("tools", "tools")):
        value = remaining.take(*parameters, theirs)
        if value:
            found[name] = value
    for name, largest in (("temperature", MAX_TEMPERATURE), ("max_tokens", MAX_TOKENS)):
        number = remaining.take_number(*parameters, name)
        if number is None:
            continue
        if 0 <= number <= largest:
            found[name] = number
        else:
            remaining.note((*parameters, name), f"is above {largest} and left out")
    if message:
        found["commit_message"] = message[:COMMIT_MESSAGE_CHARACTERS]
        if len(message) > COMMIT_MESSAGE_CHARACTERS:
            remaining.note(path, f"of its message the first {COMMIT_MESSAGE_CHARACTERS:,} characters are kept")
    return found


def messages_of(
    remaining: Remaining, path: Path, given: Sequence[Any], rewritten: Callable[[str], str]
) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    others = False
    for place, one in enumerate(given):
        at = (*path, place)
        if isinstance(one, Mapping) and set(one) == {INCLUDE}:
            found.append(dict(one))
            continue
        role, text = (one.get("role"), _text_of(one.get("content"))) if isinstance(one, Mapping) else (None, None)
        if role not in ROLES or not text:
            # The client's own messages follow the prompt's, so that a place for them at the end needs no mark.
            is_place = isinstance(one, Mapping) and one.get("type") == "placeholder" and place == len(given) - 1
            words = (
                "is left out: the client's messages follow" if is_place else "is no message of text, and is left out"
            )
            remaining.note(at, words, is_lossy=not is_place)
        elif role in INSTRUCTION_ROLES and others:
            words = "an instruction behind other messages is left out: move it to the beginning"
            remaining.note(at, words, is_lossy=True)
        else:
            others = others or role not in INSTRUCTION_ROLES
            found.append({"role": role, "content": checked_text(remaining, at, rewritten(text))})
    return found


def checked_text(remaining: Remaining, path: Path, text: str) -> str:
    known = {placeholder.start for placeholder in find_placeholders(text)}
    foreign = [found[0] for found in _TEMPLATE.finditer(text) if found.start() not in known]
    if foreign:
        remaining.note(path, f"{foreign[0][:40]} is no placeholder here, and stays as text")
    return text


def label_of(remaining: Remaining, path: Path, name: str) -> str:
    found = _NOT_IN_A_LABEL.sub("-", name.lower()).strip("-._")
    if name_problem(found):
        remaining.note(path, f"{name}: no label here is called so; it is left out")
        return ""
    if found != name:
        remaining.note(path, f"the label {name} is called {found} here")
    return found


def variables_of(texts: Sequence[str], types: Mapping[str, str]) -> list[dict[str, Any]]:
    names = dict.fromkeys(placeholder.name for text in texts for placeholder in find_placeholders(text))
    return [{"name": name, "type": types.get(name, "string"), "required": True} for name in names]


def _texts(messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A single system message becomes the prompt, which a client's messages follow."""
    if len(messages) == 1 and messages[0].get("role") == "system":
        return {"system_prompt": messages[0]["content"]}
    return {"messages": list(messages)}


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    if not parts or not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts):
        return ""
    return "\n".join(part["text"] for part in parts)
