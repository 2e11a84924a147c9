"""Addresses and authorization: the Gemini API with its key, Vertex AI in its three ways. https://ai.google.dev/api,
https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/overview"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from integrations.providers.base import Credentials
from integrations.providers.common.endpoints import USER_AGENT
from integrations.providers.errors import UnsupportedParameterError, incomplete, no_role

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
VERTEX_URL = "https://aiplatform.googleapis.com/v1"
_GLOBAL = "global"
_MULTI_REGIONS = ("us", "eu")
# Keys of the Gemini API and of Vertex's express mode begin like this; an access token has no fixed form.
_API_KEYS = ("AIza", "AQ.")
_KINDS = ("models/", "tunedModels/")
_LOCATION = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """`root` is the address before the model's path. `needs_token`: each request carries an access token."""

    root: str
    headers: Mapping[str, str]
    needs_token: bool = False
    project: str = ""


def is_service_account(secret: str) -> bool:
    return secret.lstrip()[:1] == "{"


def gemini_place(credentials: Credentials) -> Place:
    return Place((credentials.base_url or GEMINI_URL).rstrip("/"), _with_key(credentials.secret))


def vertex_place(credentials: Credentials) -> Place:
    """Raises ProviderError(CREDENTIALS) if the project or the location is not a valid name."""
    secret, project = credentials.secret, credentials.extra.get("project", "").strip()
    if credentials.is_ambient and not secret:
        raise no_role("google_vertex")
    if is_service_account(secret):
        project = project or _project_of(secret)
        if not project:
            raise incomplete("the integration names no Google Cloud project", "google_vertex")
        return Place(_in_project(credentials, project), _HEADERS, needs_token=True, project=project)
    if secret.startswith(_API_KEYS) or not project:
        return Place((credentials.base_url or VERTEX_URL).rstrip("/"), _with_key(secret))
    headers = {**_HEADERS, "authorization": f"Bearer {secret}"}
    return Place(_in_project(credentials, project), headers, project=project)


def gemini_path(model: str) -> str:
    """Raises UnsupportedParameterError for an invalid name."""
    for kind in _KINDS:
        if model.startswith(kind):
            return kind + _quoted(model[len(kind) :])
    return "models/" + _quoted(model)


def vertex_path(model: str) -> str:
    """The path for `gemini-…`, `google/gemini-…`, `publishers/google/models/gemini-…` or `endpoints/123` (a tuned
    model).

    Raises UnsupportedParameterError for another publisher's model, which has another dialect.
    """
    if model.startswith("endpoints/"):
        return "endpoints/" + _quoted(model[len("endpoints/") :])
    name = model.removeprefix("publishers/").replace("/models/", "/", 1).removeprefix("models/")
    publisher, slash, rest = name.partition("/")
    if not slash:
        publisher, rest = "google", name
    if publisher != "google":
        raise UnsupportedParameterError("model", f"models of {publisher!r} do not speak Gemini's dialect")
    return "publishers/google/models/" + _quoted(rest)


_HEADERS = {"content-type": "application/json", "user-agent": USER_AGENT}


def _with_key(secret: str) -> dict[str, str]:
    return {**_HEADERS, "x-goog-api-key": secret} if secret else dict(_HEADERS)


def _in_project(credentials: Credentials, project: str) -> str:
    location = credentials.extra.get("location", "").strip() or _GLOBAL
    if not _LOCATION.fullmatch(location):
        # The location becomes part of a host name, so its characters are checked.
        raise incomplete("the integration's location is not the name of one", "google_vertex")
    base_url = (credentials.base_url or f"https://{_host(location)}/v1").rstrip("/")
    return f"{base_url}/projects/{quote(project, safe='')}/locations/{location}"


def _host(location: str) -> str:
    """Multi-region locations have hosts of another form:
    https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations"""
    if location == _GLOBAL:
        return "aiplatform.googleapis.com"
    return (
        f"aiplatform.{location}.rep.googleapis.com"
        if location in _MULTI_REGIONS
        else f"{location}-aiplatform.googleapis.com"
    )


def _quoted(name: str) -> str:
    if not name.strip(" ."):
        raise UnsupportedParameterError("model", "the name is empty")
    return quote(name, safe="")


def _project_of(secret: str) -> str:
    try:
        account = msgspec.json.decode(secret)
    except msgspec.DecodeError:
        raise incomplete("the service account is not valid JSON", "google_vertex") from None
    return str(account.get("project_id") or "") if isinstance(account, dict) else ""
