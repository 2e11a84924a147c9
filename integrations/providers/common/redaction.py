"""Removes secrets from providers' texts and objects: keys and account ids by their form, secrets in use by value.

`scrub` and `details_of` serve every failure. `without_secrets` serves tests of integrations, where the answering host
may echo the credential in any form.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from integrations.providers.base import Credentials

# The pattern matches the known forms of keys, and any text in a place where keys are sent.
_SECRETS = re.compile(
    r"""(?ix)
    \b(?:sk|pk|gsk|xai|csk|pplx|r8|hf|fw|tgp_v1|svc|key|AIza|AKIA|ASIA|nvapi)[-_]?[A-Za-z0-9*_\-]{10,}
    | \bBearer\s+[^\s"',;]+
    | (?<=[?&])(?:api[-_]?key|key|access[-_]?token|token|sig|signature|x-amz-[a-z-]+)=[^&\s"']+
    | \b(?:org|proj|user|acct)[-_][A-Za-z0-9]{10,}
    """
)
_SHOWN_KEY = re.compile(r"(?i)(api[ _-]?key(?: provided)?\s*:\s*)([^\s\"',]+)")
_SECRET_FIELD = re.compile(r"(?i)api[-_]?key|secret|password|authorization|credential|(?:^|_)token$|user_id|account_id")
_REDACTED = "[redacted]"
# A shorter value of a header may be an ordinary word, so it is not redacted.
_MIN_HEADER_SECRET = 8
# Six consecutive characters reveal a secret, so a text with them is redacted even when the provider shows only the
# beginning or end.
_MIN_REVEALING = 6
# The pattern matches a word as long as a key can be; a word that contains a part of a secret is redacted as a whole.
_WORD = re.compile(r"[^\s\"'<>(){}\[\],;]+")
_SECRET_NAMES = ("access_key_id", "secret_access_key", "session_token")
# The limits apply to a vendor's error object, and the parts beyond them are left out.
_MAX_DEPTH = 6
_MAX_MEMBERS = 30
_MAX_CHARACTERS = 2000
_MAX_NAME = 100
# The limit of 8,000 characters applies to all texts of one error object together.
_MAX_TOTAL_CHARACTERS = 8000


def scrub(text: str, *secrets: str) -> str:
    """`secrets` are the integration's own, removed anywhere in the text."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, _REDACTED)
    text = _SECRETS.sub(_REDACTED, text)
    return _SHOWN_KEY.sub(rf"\1{_REDACTED}", text)


def rewritten(value: Any, change: Callable[[str], str]) -> Any:
    """Applies `change` to every text of a copy of the JSON, including names."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [rewritten(item, change) for item in value]
    if isinstance(value, dict):
        return {change(name): rewritten(item, change) for name, item in value.items()}
    return value


def details_of(error: Any) -> dict[str, Any] | None:
    """A vendor's error object as a client may see it: redacted and limited in size. None if empty or not an object."""
    if not isinstance(error, dict) or not error:
        return None
    cut: dict[str, Any] = _Cut().of(error, _MAX_DEPTH)
    return cut


def _beginning(text: str, max_characters: int) -> str:
    """Cuts between two words, since half of a key would not be recognised as one."""
    return text if len(text) <= max_characters else text[:max_characters].rpartition(" ")[0]


class _Cut:
    def __init__(self) -> None:
        self._left = _MAX_TOTAL_CHARACTERS

    def of(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            copied = scrub(_beginning(value, min(_MAX_CHARACTERS, self._left)))
            self._left = max(0, self._left - len(copied))
            return copied
        if not isinstance(value, (dict, list)):
            return value
        if depth <= 0:
            return None
        if isinstance(value, list):
            return [self.of(item, depth - 1) for item in value[:_MAX_MEMBERS]]
        return {
            scrub(name[:_MAX_NAME]): self._field(name, item, depth - 1)
            for name, item in list(value.items())[:_MAX_MEMBERS]
        }

    def _field(self, name: str, value: Any, depth: int) -> Any:
        if value is not None and not isinstance(value, (bool, dict, list)) and _SECRET_FIELD.search(name):
            return _REDACTED
        return self.of(value, depth)


def secret_values(credentials: Credentials) -> set[str]:
    return {value for value in credentials.extra_headers.values() if len(value) >= _MIN_HEADER_SECRET}


def secrets_of(credentials: Credentials, *more: str) -> tuple[str, ...]:
    """Every text that must not be shown: the key, its secret fields, the private parts of a service account."""
    found = [*more, *secret_values(credentials), *(credentials.extra.get(name, "") for name in _SECRET_NAMES)]
    # The file of a service account consists mostly of ordinary words; only its private parts are secrets.
    found += _private_parts(credentials.secret) if credentials.secret[:1] == "{" else [credentials.secret]
    return tuple(secret for secret in found if secret)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Removes words that contain a part of a secret: plain, in capitals, percent-encoded or in base64."""
    text = scrub(text, *secrets)
    for secret in secrets:
        text = _without(text, secret)
    return text


def _without(text: str, secret: str) -> str:
    if len(secret) < _MIN_REVEALING:
        # Such a short secret cannot be told from ordinary words, so a text that contains it is not shown at all.
        return "" if secret.lower() in text.lower() else text
    shown = _shapes(secret)
    return _WORD.sub(lambda word: _REDACTED if _reveals(word[0].lower(), shown) else word[0], text)


def _reveals(word: str, shown: tuple[str, ...]) -> bool:
    pieces = {word[start : start + _MIN_REVEALING] for start in range(len(word) - _MIN_REVEALING + 1)}
    return any(piece in shape for piece in pieces for shape in shown)


def _shapes(secret: str) -> tuple[str, ...]:
    raw = secret.encode()
    # Base64 of a text that contains the secret has three alignments; the ends, which depend on the neighbouring bytes,
    # are cut off.
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
