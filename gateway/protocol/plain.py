"""The plain form that most chat completions have: messages of a role and a text, and parameters of one value each.

One parameter is the gateway's own, the name of a managed prompt. The decoder takes nothing else. So one look at the
bytes says both that the request is valid and that it has nothing for the gateway or an adapter to act on. Other bodies
are searched for that again and again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_type_hints

import msgspec
from msgspec.structs import fields

from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import MAX_MESSAGES, NULL, ChatCompletionRequest, Message
from integrations.providers.common.search import find

NEVER_IN_PLAIN: Final = frozenset(
    {
        NULL,
        b'"untrusted"',
        b'"assistant"',
        b'"developer"',
        b'"name"',
        b"function",
        b"cache_",
        b'"cache_control"',
        b'"document_url"',
        b'"file"',
        b'"image_url"',
        b'"logit_bias"',
        b'"logprobs"',
        b'"response_format"',
        b'"tool_choice"',
        b'"top_logprobs"',
        b'"web_search_options"',
    }
)
"""Marks, of the gateway and of adapters (`PassingAdapter.marks`), of what a request of plain form has not. Its texts
may hold these bytes, which mean nothing there, and an assistant's message may concern an adapter only by what it has
beside its text."""


class _Absent:
    pass


def _refuse(expected: type, value: Any) -> Any:
    raise ValueError(f"{expected.__name__} was given")


def _not_null(hint: Any) -> Any:
    kept = tuple(one for one in get_args(hint) if one is not NoneType)
    return Union[kept] if NoneType in get_args(hint) else hint  # noqa: UP007 - the types are known at run time


def _plain(base: type[Any], own: Mapping[str, Any], absent: frozenset[str]) -> Any:
    """Returns a type of the objects of `base` without unknown fields, nulls, and the fields in `absent`.

    The fields of `own` are required, with another type.
    """
    types = get_type_hints(base, include_extras=True)
    made: list[Any] = []
    for field in fields(base):
        name = field.name
        hint = _Absent if name in absent else own.get(name, _not_null(types[name]))
        made.append((name, hint) if field.required or name in own else (name, hint, field.default))
    return msgspec.defstruct(
        f"Plain{base.__name__}",
        made,
        bases=(base,),
        forbid_unknown_fields=True,
        kw_only=True,
    )


_Message = _plain(
    Message,
    {"role": Literal["system", "user", "assistant"], "content": str},
    frozenset({"name", "tool_calls", "tool_call_id"}),
)
PlainRequest: Final[type[ChatCompletionRequest]] = _plain(
    ChatCompletionRequest,
    # mypy does not know a type that is made at run time.
    {"messages": Annotated[list[_Message], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]},  # type: ignore[valid-type]
    frozenset(
        {
            "tools",
            "tool_choice",
            "response_format",
            "thinking",
            "models",
            "provider",
            "prompt_variables",
        }
    ),
)
_decode = msgspec.json.Decoder(PlainRequest, dec_hook=_refuse).decode
# Clients mostly write their further fields behind the messages, where a decoder comes last.
_LONG, _END = 8192, 1024
_NAME_OF_FIELD = re.compile(rb'"(\w+)"\s*:')
_NAMES = frozenset(name.encode() for name in (*PlainRequest.__struct_fields__, "role", "content"))
# Parts of messages, tools, their calls, and formats of answers have it, and nothing that is plain: this says so sooner.
_TYPE = b'"type"'


def plain_request(body: bytes) -> ChatCompletionRequest | None:
    if len(body) > MAX_MESSAGE_BYTES or find(body, _TYPE) >= 0:
        return None
    if len(body) > _LONG and not _NAMES.issuperset(_NAME_OF_FIELD.findall(body, len(body) - _END)):
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
