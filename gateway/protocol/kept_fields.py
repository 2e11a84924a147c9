"""The one table of the request fields that name an object which a provider keeps, for every surface.

Projects may share a provider's account, so anyone who knows such an id could reach what another project made. A field
that is not here reaches providers unchecked, so `tests/gateway/kept` walks the types of the vendors' SDKs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from core.errors import ValidationError
from integrations.providers.common.search import find
from integrations.providers.given import Given, Kept


class Reference(NamedTuple):
    kind: Kept
    id: str
    field: str

    @property
    def given(self) -> Given:
        return self.kind, self.id


FIELDS: Final[Mapping[str, Kept]] = {
    **dict.fromkeys(("file_id", "file_ids", "input_file_id", "file_uri", "fileUri"), Kept.FILE),
    **dict.fromkeys(("ragFileIds", "rag_file_ids"), Kept.FILE),
    **dict.fromkeys(("previous_response_id", "comparison_response_id", "previous_message_id"), Kept.RESPONSE),
    **dict.fromkeys(("continuation_id", "previous_interaction_id"), Kept.RESPONSE),
    **dict.fromkeys(("conversation", "conversation_id"), Kept.CONVERSATION),
    **dict.fromkeys(("container", "container_id"), Kept.CONTAINER),
    **dict.fromkeys(("vector_store_id", "vector_store_ids", "library_ids", "knowledge_id"), Kept.STORE),
    **dict.fromkeys(("fileSearchStoreNames", "file_search_store_names"), Kept.STORE),
    **dict.fromkeys(("ragCorpus", "rag_corpus", "ragCorpora", "rag_corpora"), Kept.STORE),
    **dict.fromkeys(("vertexAiSearch.datastore", "vertex_ai_search.datastore"), Kept.STORE),
    **dict.fromkeys(("vertexAiSearch.engine", "vertex_ai_search.engine"), Kept.STORE),
    **dict.fromkeys(("dataStoreSpecs.dataStore", "data_store_specs.data_store"), Kept.STORE),
    **dict.fromkeys(("cachedContent", "cached_content"), Kept.CACHE),
    **dict.fromkeys(("skill_id", "tunnel_id", "user_profile_id", "workspace_id"), Kept.ASSET),
    **dict.fromkeys(("conversation.id",), Kept.CONVERSATION),
    **dict.fromkeys(("container.id",), Kept.CONTAINER),
    **dict.fromkeys(("prompt.id",), Kept.PROMPT),
    **dict.fromkeys(("audio.id",), Kept.AUDIO),
    **dict.fromkeys(("voice.id",), Kept.ASSET),
}
"""The kinds by the name of the field, with the name of its object before it where it needs one."""
MARKS: Final = (
    *(b"file_id", b"file_uri", b"fileUri", b"_response_id", b"previous_", b"continuation_id"),
    *(b'"conversation', b'"container', b"vector_store_id", b"library_ids", b"knowledge_id", b"SearchStoreNames"),
    *(b"search_store_names", b'"rag', b"vertexAiSearch", b"vertex_ai_search", b"dataStoreSpecs", b"data_store_specs"),
    *(b"cachedContent", b"cached_content", b"skill_id", b"tunnel_id", b"user_profile_id", b"workspace_id"),
    *(b'"audio"', b'"voice"'),
)
"""Byte strings, one of which is in every body that has one of the fields, unless it is written with escapes."""
# Only Responses have stored prompts, and items that stand for others by their ids.
_MARK_OF_PROMPTS, _ITEMS, _MARK_OF_ITEMS = b'"prompt"', "input", b'"id"'
_RESPONSES = "responses"
_FORM = b"--"
# A backslash that is itself escaped stands for itself.
_ESCAPED, _ESCAPED_LETTER = b"\\u00", re.compile(rb"(?<!\\)(?:\\\\)*\\u00[4-7]")

# What a client sends back of an answer: the provider reads nothing by these ids.
_ECHOES = frozenset(
    {
        *("file_citation", "container_file_citation", "file_path", "char_location", "page_location"),
        *("content_block_location", "bash_code_execution_output", "code_execution_output"),
    }
)
# Objects of the clients' own, in which a name means nothing to the provider.
_FREE = frozenset(
    {
        *("metadata", "labels", "prompt_variables", "arguments", "args", "parameters", "input_schema", "schema"),
        *("parametersJsonSchema", "parameters_json_schema", "responseSchema", "response_schema", "json_schema"),
        *("responseJsonSchema", "response_json_schema", "results"),
    }
)
# Google's own address of a file of its Files API; others are addresses of the web or of a bucket.
_GOOGLES_FILE = re.compile(r"(?:https?://[^/]*googleapis\.com/(?:.*/)?)?files/[^/?#]+", re.IGNORECASE)
_URIS = frozenset({"file_uri", "fileUri"})
# The vendors' own skills have names that everybody knows: those of Anthropic by their type, those of OpenAI by the name
# (https://developers.openai.com/api/docs/guides/tools-skills).
_SKILL, _OF_ANTHROPIC, _OF_OPENAI = "skill_id", "anthropic", "openai-"
# The gateway makes items of other protocols' answers, whose ids no provider knows (`surfaces.responses.response`).
_OWN_ITEM = re.compile(r"[a-z]+_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_[0-9]+")
_OF_A_PARENT = frozenset(name.rpartition(".")[2] for name in FIELDS if "." in name)
_OF_RESPONSES = frozenset({"previous_response_id", "conversation", "conversation.id", "prompt.id"})
_OF_A_STUB = frozenset({"id", "type"})
_MAX_ID_CHARACTERS = 2000


class _Object(tuple[tuple[str, Any], ...]):
    """The members of a JSON object, including repeated names: a provider may read the first."""

    __slots__ = ()

    def texts(self, name: str) -> list[str]:
        return [value for key, value in self if key == name and isinstance(value, str)]


_CONTAINERS = (_Object, list)


def may_name_kept(body: bytes) -> bool:
    for mark in MARKS:
        if find(body, mark) >= 0:
            return True
    return find(body, _ESCAPED) >= 0 and _ESCAPED_LETTER.search(body) is not None


def references_of(body: bytes, operation: str) -> list[Reference]:
    """A body that is not JSON names nothing. Raises ValidationError (400) for one that is nested too deeply."""
    if body.startswith(_FORM):  # It may be a file of many megabytes, and names nothing.
        return []
    in_responses = operation == _RESPONSES
    has_fields = may_name_kept(body) or (in_responses and find(body, _MARK_OF_PROMPTS) >= 0)
    if not has_fields and not (in_responses and find(body, _MARK_OF_ITEMS) >= 0):
        return []
    try:
        fields = json.loads(body, object_pairs_hook=_Object, parse_int=float)
        if not has_fields and isinstance(fields, _Object):
            # An agent's request has many tools beside its items.
            fields = _Object(pair for pair in fields if pair[0] == _ITEMS)
        return list(dict.fromkeys(_found(fields, "", "", in_responses)))
    except RecursionError:
        raise ValidationError("The request is nested too deeply") from None
    except ValueError:
        return []  # The next stage refuses it.


def is_of_responses(reference: Reference, operation: str) -> bool:
    return operation == _RESPONSES and (reference.kind is Kept.ITEM or reference.field in _OF_RESPONSES)


def _found(value: Any, path: str, parent: str, in_responses: bool) -> Iterator[Reference]:
    if isinstance(value, _Object):
        yield from _found_in_object(value, path, parent, in_responses)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if isinstance(inner, _CONTAINERS):
                yield from _found(inner, f"{path}[{index}]", parent, in_responses)


def _found_in_object(value: _Object, path: str, parent: str, in_responses: bool) -> Iterator[Reference]:
    types = value.texts("type")
    if in_responses and path.startswith(_ITEMS):
        yield from _item(value, types, path)
    is_echo = bool(types) and _ECHOES.issuperset(types)
    for name, inner in value:
        kind = None if is_echo else FIELDS.get(name)
        if name in _OF_A_PARENT and not is_echo:
            kind = FIELDS.get(f"{parent}.{name}")
        if kind is None and not isinstance(inner, _CONTAINERS):
            continue
        where = f"{path}.{name}" if path else name
        if kind is not None and not (name == _SKILL and types and all(one == _OF_ANTHROPIC for one in types)):
            yield from _named(kind, inner, name, where)
        # The arguments of a call are an object, and the items of a response a list.
        if name not in _FREE and not (name == _ITEMS and isinstance(inner, _Object)):
            yield from _found(inner, where, name, in_responses)


def _named(kind: Kept, value: Any, name: str, where: str) -> Iterator[Reference]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one and not _is_public(name, one):
            yield Reference(kind, one[:_MAX_ID_CHARACTERS], where)


def _is_public(name: str, value: str) -> bool:
    if name in _URIS:
        return _GOOGLES_FILE.fullmatch(value) is None
    return name == _SKILL and value.startswith(_OF_OPENAI)


def _item(value: _Object, types: list[str], path: str) -> Iterator[Reference]:
    ids = value.texts("id")
    stands = ids and (
        "item_reference" in types
        or ("reasoning" in types and not any(value.texts("encrypted_content")))
        or ("image_generation_call" in types and not any(value.texts("result")))
        or all(name in _OF_A_STUB for name, _ in value)
    )
    for one in ids if stands else ():
        if not _OWN_ITEM.fullmatch(one):
            yield Reference(Kept.ITEM, one[:_MAX_ID_CHARACTERS], f"{path}.id")
