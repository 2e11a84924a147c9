"""An integration's additions to every request: parameters, its own headers, and the client's headers that it passes on.

Parameters are set before the adapter sees the request, in OpenAI's names, so that each dialect translates them like a
client's. Headers are set on the request that the adapter has made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

from integrations.providers.base import Credentials, UpstreamRequest

RawHeaders = Iterable[tuple[bytes, bytes]]

# The fields of each group mean the same: a default for one is not added beside another, and a forced value for one
# removes the others.
_SAME = (("max_tokens", "max_completion_tokens"), ("reasoning_effort", "thinking", "reasoning"))
_OTHERS = {name: tuple(other for other in same if other != name) for same in _SAME for name in same}
# The headers for beta features are lists of words, and the words of the adapter, the integration and the client are
# joined.
_BETA = "anthropic-beta"
_LISTS = frozenset({_BETA, "openai-beta"})
MAX_HEADER_VALUE = 2048
_VALUE = re.compile(r"[\x20-\x7e]+\Z")
_NULL = msgspec.Raw(b"null")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def with_parameters(body: bytes, credentials: Credentials) -> bytes:
    """Defaults fill absent fields; forced values always apply, and a forced null removes the field. Other values keep
    their bytes."""
    raw = _decode(body)
    for name, value in credentials.default_parameters.items():
        if all(raw.get(same, _NULL) == _NULL for same in (name, *_OTHERS.get(name, ()))):
            raw[name] = msgspec.Raw(_encode(value))
    for name, value in credentials.forced_parameters.items():
        raw.pop(name, None)
        if value is not None:
            for same in _OTHERS.get(name, ()):
                raw.pop(same, None)
            raw[name] = msgspec.Raw(_encode(value))
    return _encode(raw)


def with_headers(upstream: UpstreamRequest, credentials: Credentials, client: RawHeaders = ()) -> UpstreamRequest:
    """The integration's own headers win over the client's. `client` has names in lower case."""
    passed, own = forwarded(credentials, client), credentials.extra_headers
    if upstream.betas is not None and _BETA in passed:
        known = [word for word in passed[_BETA].split(",") if word.strip() in upstream.betas]
        passed = {name: value for name, value in passed.items() if name != _BETA}
        if known:
            passed[_BETA] = ",".join(known)
    if not passed and not own:
        return upstream
    headers = {**upstream.headers, **passed, **own}
    for name in _LISTS & headers.keys():
        values = ",".join(part[name] for part in (upstream.headers, own, passed) if name in part)
        words = dict.fromkeys(word.strip() for word in values.split(","))
        headers[name] = ",".join(word for word in words if word)
    return msgspec.structs.replace(upstream, headers=headers)


def forwarded(credentials: Credentials, client: RawHeaders) -> Mapping[str, str]:
    names = credentials.forwarded_names
    found: dict[str, str] = {}
    for name, value in client:
        if name in names:
            key, text = name.decode("ascii"), value.decode("latin-1").strip()
            text = f"{found[key]},{text}" if key in found else text
            if len(text) <= MAX_HEADER_VALUE and _VALUE.match(text):
                found[key] = text
    return found


def answers_apart(credentials: Credentials, client: RawHeaders) -> tuple[object, ...]:
    """The additions' part of a cache key, empty without any. Secrets enter it as a digest."""
    if not credentials.sets_parameters and not credentials.adds_headers:
        return ()
    passed = sorted(forwarded(credentials, client).items())
    own = (credentials.default_parameters, credentials.forced_parameters, credentials.extra_headers)
    if not passed and not any(own):
        return ()
    return hashlib.blake2b(_encode_sorted(own), digest_size=16).hexdigest(), *passed
