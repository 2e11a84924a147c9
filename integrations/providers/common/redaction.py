"""Keys and account ids out of what a provider says, be it a text or an object."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Keys as providers write them, and anything in a place where keys travel.
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
# Of a vendor's error object: what is beyond these is left out.
_MAX_DEPTH = 6
_MAX_MEMBERS = 30
_MAX_CHARACTERS = 2000
_MAX_NAME = 100
# Of all texts of one object together.
_MAX_TOTAL_CHARACTERS = 8000


def scrub(text: str, *secrets: str) -> str:
    """`text` without keys and account ids. `secrets` are the integration's own, removed wherever they stand."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, _REDACTED)
    text = _SECRETS.sub(_REDACTED, text)
    return _SHOWN_KEY.sub(rf"\1{_REDACTED}", text)


def rewritten(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of JSON with every text, names included, as `change` has it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [rewritten(item, change) for item in value]
    if isinstance(value, dict):
        return {change(name): rewritten(item, change) for name, item in value.items()}
    return value


def details_of(error: Any) -> dict[str, Any] | None:
    """A vendor's error object as a client may see it: keys and account ids taken out, and cut down to a bounded size.
    None when it is no object, or an empty one."""
    if not isinstance(error, dict) or not error:
        return None
    cut: dict[str, Any] = _Cut().of(error, _MAX_DEPTH)
    return cut


def _beginning(text: str, most: int) -> str:
    """Cut between two words: nobody knows the half of a key for one."""
    return text if len(text) <= most else text[:most].rpartition(" ")[0]


class _Cut:
    """A walk through one object, which stops copying texts when there have been too many."""

    def __init__(self) -> None:
        self._left = _MAX_TOTAL_CHARACTERS

    def of(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            kept = scrub(_beginning(value, min(_MAX_CHARACTERS, self._left)))
            self._left = max(0, self._left - len(kept))
            return kept
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
