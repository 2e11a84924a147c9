"""Names of tools that every vendor takes, for clients of protocols that allow others.

OpenAI, Mistral, Bedrock and others take 64 characters (https://platform.openai.com/docs/api-reference/chat/create,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html). Anthropic takes 128, and
Google also dots and colons (https://ai.google.dev/api/caching#FunctionDeclaration). A name that fits stays; any other
is replaced in the whole chat completion, and the answer gets the client's own name back.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from gateway.surfaces.checks import Json

MAX_LENGTH = 64

_fits = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_LENGTH}}}").fullmatch
_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_BYTES = 4
_MAX_HEAD = MAX_LENGTH - 2 * _DIGEST_BYTES - 1
# Blocks of Anthropic's that name a tool, with the field of the name.
_NAMING = {"tool_use": "name", "tool_reference": "tool_name"}


class _Function(Protocol):
    name: str | None


class _Call(Protocol):
    @property
    def function(self) -> _Function | None: ...


class _Message(Protocol):
    provider_specific_fields: dict[str, Any] | None

    @property
    def tool_calls(self) -> Sequence[_Call] | None: ...


def fitted(name: str, taken: Container[str], seed: str = "") -> str:
    """Replaces characters that not every vendor takes by underscores. A name that is too long or `taken` ends in digits
    of a hash of the seed, by default the name."""
    made = plain = _OTHER_CHARACTERS.sub("_", name)
    seed = seed or name
    while len(made) > MAX_LENGTH or made in taken:
        seed = blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
        made = f"{plain[:_MAX_HEAD]}_{seed}"
    return made


def fit_names(chat: Json) -> Mapping[str, str]:
    """Replaces unsuitable names in place: in the tools, the choice among them, and the messages. Returns the client's
    names by the new ones.

    The same tools get the same names in every request, on which prompt caches depend.
    """
    functions = list(_functions(chat))
    names = dict.fromkeys(function["name"] for function in functions)
    replaced = [name for name in names if not _fits(name)]
    if not replaced:
        return {}
    taken = names.keys() - replaced
    renames: dict[str, str] = {}
    for name in replaced:
        renames[name] = made = fitted(name, taken)
        taken.add(made)
    for function in functions:
        function["name"] = renames.get(function["name"], function["name"])
    for message in chat["messages"]:
        _rename_in(message, renames)
    return {made: name for name, made in renames.items()}


def restore_names(message: _Message, names: Mapping[str, str]) -> None:
    for call in message.tool_calls or ():
        function = call.function
        if function is not None and function.name:
            function.name = names.get(function.name, function.name)
    if message.provider_specific_fields:
        message.provider_specific_fields = _renamed(message.provider_specific_fields, names)


def _functions(chat: Json) -> Iterator[Json]:
    yield from map(_held, filter(_has_name, chat.get("tools") or ()))
    choice = chat.get("tool_choice")
    if isinstance(choice, dict):
        allowed = choice.get("allowed_tools", {}).get("tools", (choice,))
        yield from map(_held, filter(_has_name, allowed))
    for message in chat["messages"]:
        if "tool_calls" in message:
            yield from map(_held, message["tool_calls"])


def _has_name(holder: Json) -> bool:
    """False for a tool that only one vendor has, which stays in this vendor's form."""
    function = holder.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _held(holder: Json) -> Json:
    function: Json = holder["function"]
    return function


def _rename_in(message: Json, renames: Mapping[str, str]) -> None:
    if message["role"] == "tool" and message.get("name") in renames:
        message["name"] = renames[message["name"]]
    if isinstance(message["content"], list):
        message["content"] = [_renamed(p, renames) if p["type"] in _NAMING else p for p in message["content"]]
    if "provider_specific_fields" in message:
        message["provider_specific_fields"] = _renamed(message["provider_specific_fields"], renames)


def _renamed(value: Any, renames: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(inner, renames) for inner in value]
    if not isinstance(value, dict):
        return value
    made = {name: inner if name == "input" else _renamed(inner, renames) for name, inner in value.items()}
    field = _NAMING.get(str(made.get("type")), "")
    if isinstance(name := made.get(field), str):
        made[field] = renames.get(name, name)
    return made
