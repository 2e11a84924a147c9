from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from config import env
from core.roles import Role
from core.sign_in.providers import GroupRights, Provider

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SUPERUSER = "superuser"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EXPECTED_GROUPS = (
    'expected a JSON object such as {"platform": "superuser", "shop": {"Shop": "editor"}, "support": {"*": "reader"}},'
    f" with the roles {', '.join(Role.values)}"
)


def _providers() -> tuple[Provider, ...]:
    names = env.strings("OIDC_PROVIDERS", [])
    if len(set(names)) != len(names) or not all(_NAME.fullmatch(name) for name in names):
        raise env.InvalidVariable(
            "Environment variable OIDC_PROVIDERS: expected different names of small letters, digits and hyphens, comma"
            " apart, such as company,partner"
        )
    return tuple(_provider(name) for name in names)


def _provider(name: str) -> Provider:
    prefix = f"OIDC_{name.upper().replace('-', '_')}"
    # Entra, Okta and the like print the issuer with the path of its discovery behind it.
    issuer = (env.url(f"{prefix}_ISSUER", schemes=("https", "http")) or "").removesuffix(
        "/.well-known/openid-configuration"
    )
    parts = urlsplit(issuer)
    if not parts.hostname or (parts.scheme == "http" and parts.hostname not in _LOOPBACK):
        raise env.InvalidVariable(
            f"Environment variable {prefix}_ISSUER: expected the address of the provider's issuer, which starts with"
            " https: unless it is on this machine"
        )
    client_id = env.text(f"{prefix}_CLIENT_ID")
    if not client_id:
        raise env.InvalidVariable(f"Environment variable {prefix}_CLIENT_ID: expected the id of this client")
    scopes = env.strings(f"{prefix}_SCOPES", ["profile", "email"])
    return Provider(
        name=name,
        label=env.text(f"{prefix}_LABEL", name.replace("-", " ").capitalize()),
        issuer=issuer,
        client_id=client_id,
        client_secret=env.secret(f"{prefix}_CLIENT_SECRET") or "",
        scopes=tuple(dict.fromkeys(["openid", *scopes])),
        groups_claim=env.text(f"{prefix}_GROUPS_CLAIM", "groups"),
        groups=_groups(f"{prefix}_GROUPS"),
        links_by_email=env.boolean(f"{prefix}_LINK_BY_EMAIL", False),
    )


def _groups(variable: str) -> Mapping[str, GroupRights]:
    raw = env.text(variable)
    if not raw:
        return {}
    try:
        found = json.loads(raw)
        return {group: _group_rights(given) for group, given in found.items()}
    except (ValueError, AttributeError):
        raise env.InvalidVariable(f"Environment variable {variable}: {_EXPECTED_GROUPS}") from None


def _group_rights(given: Any) -> GroupRights:
    if given == _SUPERUSER:
        return GroupRights(is_superuser=True)
    return GroupRights(roles={project: Role(role) for project, role in given.items()})


OIDC_PROVIDERS = _providers()
# How long a provider may take to answer each question, and how long a sign-in by it lasts: groups count from the next.
OIDC_SECONDS = env.number("OIDC_SECONDS", 5.0, minimum=0.1, maximum=60.0)
OIDC_SESSION_HOURS = env.number("OIDC_SESSION_HOURS", 12.0, minimum=0.1, maximum=720.0)

LOCAL_LOGIN = env.boolean("LOCAL_LOGIN", True)
if not LOCAL_LOGIN and not OIDC_PROVIDERS:
    raise env.InvalidVariable("Environment variable LOCAL_LOGIN: without OIDC_PROVIDERS nobody could sign in")

# Who has to have a second factor beside the password; anybody may have one.
SECOND_FACTOR = env.choice("SECOND_FACTOR", "optional", ("optional", "superusers", "all"))

_PASSWORD = (
    "django.contrib.auth.backends.ModelBackend"
    if SECOND_FACTOR == "optional"
    else "core.sign_in.backends.PasswordBackend"
)
# A session of a backend that is not here has ended: without local logins there are none that a password began.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    *([_PASSWORD, "core.sign_in.backends.SecondFactorBackend"] if LOCAL_LOGIN else []),
    "core.sign_in.backends.OpenIdBackend",
]
SESSION_ENGINE = "core.sign_in.sessions"
