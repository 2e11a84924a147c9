"""Keeps a credential out of what is said about its test: whoever answers at the address may echo it in any form."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from integrations.providers.base import Credentials
from integrations.providers.common.endpoints import secret_values
from integrations.providers.common.failures import scrub

_HIDDEN = "[redacted]"
# So many characters in a row of a secret give it away, also when the provider shows only its beginning or end.
_TELLTALE = 6
# A word, as wide as a key can be: what surrounds a telltale goes with it.
_WORD = re.compile(r"[^\s\"'<>(){}\[\],;]+")
_SECRET_NAMES = ("access_key_id", "secret_access_key", "session_token")


def secrets_of(credentials: Credentials, *more: str) -> tuple[str, ...]:
    """Every text that must not be told: the key, what goes with it, the private parts of a service account."""
    found = [*more, *secret_values(credentials), *(credentials.extra.get(name, "") for name in _SECRET_NAMES)]
    # An account's file is mostly words that anybody may say.
    found += _private_parts(credentials.secret) if credentials.secret[:1] == "{" else [credentials.secret]
    return tuple(secret for secret in found if secret)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """`text` without a word that holds a piece of a secret: as it is, in capitals, percent-encoded or in base64."""
    text = scrub(text, *secrets)
    for secret in secrets:
        text = _without(text, secret)
    return text


def _without(text: str, secret: str) -> str:
    if len(secret) < _TELLTALE:
        # Too short to be told from ordinary words: when it occurs at all, nothing is shown.
        return "" if secret.lower() in text.lower() else text
    shown = _shapes(secret)
    return _WORD.sub(lambda word: _HIDDEN if _tells(word[0].lower(), shown) else word[0], text)


def _tells(word: str, shown: tuple[str, ...]) -> bool:
    pieces = {word[start : start + _TELLTALE] for start in range(len(word) - _TELLTALE + 1)}
    return any(piece in shape for piece in pieces for shape in shown)


def _shapes(secret: str) -> tuple[str, ...]:
    raw = secret.encode()
    # Base64 of a text that has the secret somewhere inside: three alignments, without the ends that depend on it.
    aligned = [base64.b64encode(b"\0" * shift + raw).decode()[4:-4] for shift in range(3)]
    shapes = [secret, secret[::-1], quote(secret, safe=""), base64.b64encode(raw).decode(), raw.hex(), *aligned]
    return tuple(shape.lower() for shape in dict.fromkeys(shapes))


def _private_parts(secret: str) -> list[str]:
    try:
        account = json.loads(secret)
    except ValueError:
        return [secret]
    key = str(account.get("private_key") or "")
    lines = [line for line in key.split("\n") if not line.startswith("-----")]
    return [*lines, str(account.get("private_key_id") or "")]
