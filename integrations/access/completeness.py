from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from core.encryption.fernet import UndecryptableSecretError
from core.errors import ValidationError
from integrations.access.credentials import credentials_of, is_service_account
from integrations.models import ProviderIntegration
from integrations.providers.base import AMBIENT, Credentials, Traits
from integrations.transport.ambient import HOSTS

# Secret fields such as AWS's access keys stand beside the API key or instead of it, for whichever provider needs them.
SECRET_EXTRA = ("access_key_id", "secret_access_key", "session_token")
SECRET_LENGTH = 4096
# The key file of a Google service account has about 2.4 KB as downloaded.
SERVICE_ACCOUNT_LENGTH = 16 * 1024

_OPTION = {
    # The region, location and similar options become part of a host name or a path, so their characters are restricted.
    "region": re.compile(r"[a-z0-9-]{1,40}"),
    "location": re.compile(r"[a-z0-9-]{1,40}"),
    "project": re.compile(r"[A-Za-z0-9.:_-]{1,100}"),
    "api_version": re.compile(r"[A-Za-z0-9._-]{1,50}"),
    "credentials": re.compile(AMBIENT),
    "responses_models": re.compile(r"[A-Za-z0-9._:/, -]{1,500}"),
}
_SERVICE_ACCOUNT_FIELDS = ("client_email", "private_key", "token_uri")


def checked_secret(secret: str, name: str) -> str:
    """Keys travel in headers, so only visible ASCII characters pass. Raises ValidationError."""
    secret = secret.strip()
    if len(secret) > SECRET_LENGTH or any(not "!" <= character <= "~" for character in secret):
        raise ValidationError.of_field(name, f"must be at most {SECRET_LENGTH} visible ASCII characters")
    return secret


def checked_service_account(secret: str, *, any_token_server: bool) -> str:
    """Returns the service account's JSON on one line. The gateway requests tokens from its `token_uri`, which must be
    Google's unless `any_token_server`. Raises ValidationError."""
    if len(secret) > SERVICE_ACCOUNT_LENGTH:
        raise ValidationError.of_field("api_key", f"must be at most {SERVICE_ACCOUNT_LENGTH} characters")
    try:
        account = json.loads(secret)
    except ValueError:
        raise ValidationError.of_field("api_key", "must be an API key or the JSON of a service account") from None
    if not isinstance(account, dict) or account.get("type", "service_account") != "service_account":
        raise ValidationError.of_field("api_key", "must be the JSON of a service account, with type service_account")
    for name in _SERVICE_ACCOUNT_FIELDS:
        if not isinstance(account.get(name), str) or not account[name].strip():
            raise ValidationError.of_field("api_key", f"lacks {name}, which the JSON of a service account has")
    if not any_token_server and not _is_googles(account["token_uri"]):
        raise ValidationError.of_field("api_key", "names a token_uri that is not Google's")
    return json.dumps(account, separators=(",", ":"))


def refuse_foreign(row: ProviderIntegration, traits: Traits, given: Mapping[str, Any]) -> None:
    """Raises ValidationError for fields that only other providers read. Empty and unchanged fields pass."""
    known = {*traits.options, *traits.required_options, *traits.secret_extra, *traits.optional_extra}
    foreign = [name for name, value in given.items() if name not in known and value and row.options.get(name) != value]
    if foreign:
        problem = f"There is no such field of {traits.provider}."
        raise ValidationError(f"{foreign[0]}: {problem}", details={name: [problem] for name in foreign})


def checked_options(options: Mapping[str, Any]) -> dict[str, str]:
    checked = {}
    for name, value in options.items():
        if not isinstance(value, str):
            raise ValidationError.of_field(name, "must be a text")
        value = value.strip()
        form = _OPTION.get(name)
        if value and form is not None and not form.fullmatch(value):
            raise ValidationError.of_field(name, "holds characters that it cannot have")
        checked[name] = value
    return checked


def check_complete(row: ProviderIntegration, traits: Traits) -> str:
    base_url = row.base_url or traits.base_url
    try:
        credentials = credentials_of(row)
    except UndecryptableSecretError:
        if not row.enabled:
            return base_url  # Switching an integration off must not require its key.
        raise ValidationError.of_field("api_key", "what is stored can no longer be read: enter it again") from None
    if not base_url:
        raise _missing("base_url", f"{row.provider} needs the address of the service")
    _check_secrets(credentials, traits)
    for name in traits.required_options:
        if not credentials.extra.get(name) and not _in_key(credentials, traits, name):
            raise _missing(name, f"{row.provider} needs it")
    # The region is the only placeholder that a provider's declared address may have.
    return base_url.replace("{region}", credentials.extra.get("region", ""))


def check_ambient(credentials: Credentials, base_url: str, *, trusted: bool) -> None:
    """Raises ValidationError unless the operator allows the machine's role, and it stays within its cloud."""
    if not credentials.is_ambient:
        return
    if not settings.AMBIENT_CREDENTIALS:
        raise ValidationError.of_field("credentials", "the operator has to allow it first: AMBIENT_CREDENTIALS=1")
    host = urlsplit(base_url).hostname or ""
    if base_url and not trusted and not host.endswith(HOSTS[credentials.provider]):
        allowed = ", ".join(f"*{name}" for name in HOSTS[credentials.provider])
        raise ValidationError.of_field("base_url", f"must be a host of {allowed}: the role of this machine goes there")


def _check_secrets(credentials: Credentials, traits: Traits) -> None:
    if credentials.is_ambient:
        if credentials.secret or any(credentials.extra.get(name) for name in traits.secret_extra):
            raise ValidationError.of_field("credentials", "is ambient: clear the stored key, or leave this field empty")
        return
    if credentials.secret:
        return
    missing = [name for name in traits.secret_extra if not credentials.extra.get(name)]
    if traits.secret_extra and not missing:
        return
    if 0 < len(missing) < len(traits.secret_extra):
        raise _missing(missing[0], f"{credentials.provider} needs it beside the other access key")
    if traits.optional_secret:
        return
    instead = f", or {' and '.join(traits.secret_extra)}" if traits.secret_extra else ""
    raise _missing("api_key", f"{credentials.provider} needs an API key{instead}")


def _in_key(credentials: Credentials, traits: Traits, name: str) -> bool:
    if credentials.is_ambient or not traits.service_account:
        return False
    if not is_service_account(credentials.secret):
        return True
    return name == "project" and bool(json.loads(credentials.secret).get("project_id"))


def _is_googles(token_uri: str) -> bool:
    try:
        place = urlsplit(token_uri)
        host, port = (place.hostname or "").lower(), place.port
    except ValueError:
        return False
    googles = host == "accounts.google.com" or host.endswith(".googleapis.com")
    return place.scheme == "https" and port in (None, 443) and place.username is None and googles


def _missing(name: str, problem: str) -> ValidationError:
    return ValidationError(f"{name}: {problem}", code="missing_field", details={name: [problem]})
