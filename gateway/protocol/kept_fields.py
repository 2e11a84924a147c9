"""The fields of a request that name what a provider keeps: the one table of them, for every surface.

Whoever knows such an id would get at what is behind it, whichever project has made it, since projects may share a
provider's account. A field that is not here reaches providers unasked, so `tests/gateway/kept` walks the types of the
vendors' SDKs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from core.errors import ValidationError
from integrations.providers.common.search import find


class Kept(StrEnum):
    """What an id stands for."""

    FILE = "file"
    RESPONSE = "response"
    ITEM = "item of a response"
    CONVERSATION = "conversation"
    CONTAINER = "container"
    STORE = "vector store"
    CACHE = "cached content"
    PROMPT = "stored prompt"
    ASSET = "object"


class Reference(NamedTuple):
    kind: Kept
    id: str
    field: str


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
    **dict.fromkeys(("audio.id", "voice.id"), Kept.ASSET),
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
# Only Responses have these objects, and items that stand for others by their ids.
_MARKS_OF_RESPONSES = (b'"id"',)
_RESPONSES = "responses"
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
# Anthropic's own skills have names that everybody knows.
_PUBLIC = ("skill_id", "anthropic")
# The gateway makes items of other protocols' answers, whose ids no provider knows (`surfaces.responses.response`).
_OWN_ITEM = re.compile(r"[a-z]+_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_[0-9]+")
_MAX_ID_CHARACTERS = 2000


class _Object(tuple[tuple[str, Any], ...]):
    """The members of a JSON object, also those whose name is there twice: a provider may read the first."""

    __slots__ = ()

    def texts(self, name: str) -> list[str]:
        return [value for key, value in self if key == name and isinstance(value, str)]


def may_name_kept(body: bytes, operation: str) -> bool:
    """Returns False for a body that names nothing that a provider keeps, which almost all bodies are."""
    for mark in MARKS:
        if find(body, mark) >= 0:
            return True
    if operation == _RESPONSES:
        for mark in _MARKS_OF_RESPONSES:
            if find(body, mark) >= 0:
                return True
    return find(body, _ESCAPED) >= 0 and _ESCAPED_LETTER.search(body) is not None


def may_name_file(body: bytes) -> bool:
    """Returns False for a body that names no file: it takes four searches, where all kinds take thirty."""
    return (
        find(body, b"ile_") >= 0
        or find(body, b"fileUri") >= 0
        or find(body, b"FileIds") >= 0
        or (find(body, _ESCAPED) >= 0 and _ESCAPED_LETTER.search(body) is not None)
    )


def references_of(body: bytes, operation: str) -> list[Reference]:
    """Returns what a request names of what a provider keeps. A body that is no JSON names nothing. Raises
    ValidationError (400) for one that is nested too deeply."""
    if not may_name_kept(body, operation):
        return []
    try:
        fields = json.loads(body, object_pairs_hook=_Object, parse_int=float)
        return list(dict.fromkeys(_found(fields, "", "", operation == _RESPONSES)))
    except RecursionError:
        raise ValidationError("The request is nested too deeply") from None
    except ValueError:
        return []  # A form, or what the next stage refuses.


def _found(value: Any, path: str, parent: str, in_responses: bool) -> Iterator[Reference]:
    if isinstance(value, _Object):
        if in_responses and path.startswith("input"):
            yield from _item(value, path)
        types = set(value.texts("type"))
        is_echo = bool(types) and types <= _ECHOES
        for name, inner in value:
            where = f"{path}.{name}" if path else name
            kind = None if is_echo else FIELDS.get(name) or FIELDS.get(f"{parent}.{name}")
            if kind is not None and not (name == _PUBLIC[0] and types == {_PUBLIC[1]}):
                yield from _named(kind, inner, name, where)
            # The arguments of a call are an object, and the items of a response a list.
            if name not in _FREE and not (name == "input" and isinstance(inner, _Object)):
                yield from _found(inner, where, name, in_responses)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _found(inner, f"{path}[{index}]", parent, in_responses)


def _named(kind: Kept, value: Any, name: str, where: str) -> Iterator[Reference]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one and (name not in _URIS or _GOOGLES_FILE.fullmatch(one)):
            yield Reference(kind, one[:_MAX_ID_CHARACTERS], where)


def _item(value: _Object, path: str) -> Iterator[Reference]:
    """Yields the item that an object stands for: one of an id alone, reasoning without its text that only the vendor
    reads, or an image without its bytes."""
    names, types = {name for name, _ in value}, set(value.texts("type"))
    stands = (
        names <= {"id", "type"}
        or "item_reference" in types
        or ("reasoning" in types and not any(value.texts("encrypted_content")))
        or ("image_generation_call" in types and not any(value.texts("result")))
    )
    for one in value.texts("id") if stands else ():
        if not _OWN_ITEM.fullmatch(one):
            yield Reference(Kept.ITEM, one[:_MAX_ID_CHARACTERS], f"{path}.id")
