"""The cache key covers everything that shapes an answer, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.wire import LazyFields

# These fields do not shape an answer: they name the user, the accounting, or the streaming of usage, which is always
# included here.
_WITHOUT_EFFECT = frozenset(
    {
        "user", "safety_identifier", "metadata", "store", "prompt_cache_key", "prompt_cache_retention", "stream",
        "stream_options",
    }
)  # fmt: skip
# In bodies above this size, fields are compared as they are written: parsing some megabytes blocks the event loop for
# seconds.
_MAX_PARSED_BYTES = 64 * 1024
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(order="sorted").encode


def cache_key(
    project: str,
    prompt: tuple[str, int],
    target: tuple[object, ...],
    settings: ProjectSettings,
    body: bytes,
    *,
    stream: bool,
) -> str:
    """Returns the Redis key of a request's answer. Settings that choose or change answers are part of it.

    `body` is the request as forwarded, `prompt` the id and version of its managed prompt. `target` is the provider and
    model to call: `auto` may select another model, and another provider may serve a model. Raises ValidationError for a
    number out of range.
    """
    fields: Mapping[str, Any] = LazyFields(body) if len(body) <= _MAX_PARSED_BYTES else _decode_raw(body)
    shaping = {name: value for name, value in fields.items() if name not in _WITHOUT_EFFECT and value is not None}
    context = repr((prompt, target, stream, settings.shaping))
    digest = hashlib.blake2b(context.encode(), digest_size=32, person=b"svc.cache")
    digest.update(_encode(shaping))
    return f"{prefix(project)}{digest.hexdigest()}"


def prefix(project: str) -> str:
    return f"svc:cache:{{{project}}}:"
