"""Reads who asks, and in which session, from `metadata.user_id`.

Claude Code puts both into this one field: `user_<hash>_account_<uuid>_session_<uuid>`, in newer versions the JSON of an
object with `device_id`, `account_uuid` and `session_id`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gateway.surfaces.checks import optional_object, optional_text

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_WITH_SESSION = re.compile(rf"(?P<user>.+?)_session_(?P<session>{_UUID})")

Json = dict[str, Any]


class _Ids(msgspec.Struct):
    session_id: str = ""
    account_uuid: str = ""
    device_id: str = ""


_ids_decoder = msgspec.json.Decoder(_Ids)


def read_user(fields: Json, untranslatable: list[str]) -> tuple[str, str]:
    """Returns the user and the session, each empty without one. Raises ValidationError."""
    metadata = optional_object(fields, "metadata")
    if metadata is None:
        return "", ""
    for name, value in metadata.items():
        if name != "user_id" and value is not None:
            untranslatable.append(f"metadata.{name}: a chat completion has no such field")
    return user_and_session(optional_text(metadata, "user_id", "metadata") or "")


def user_and_session(user_id: str) -> tuple[str, str]:
    """Returns the parts of a user's id. An id in any other form than Claude Code's is the user alone."""
    if user_id.startswith("{"):
        return _from_json(user_id)
    found = _WITH_SESSION.fullmatch(user_id)
    return (found["user"], found["session"]) if found else (user_id, "")


def _from_json(user_id: str) -> tuple[str, str]:
    try:
        ids = _ids_decoder.decode(user_id)
    except msgspec.DecodeError:
        return user_id, ""
    user = ids.account_uuid or ids.device_id
    return (user, ids.session_id) if user else (user_id, ids.session_id)
