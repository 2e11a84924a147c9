"""The conversation with an OpenID provider: authorization code with PKCE, by Authlib.

Authlib reads the provider's discovery, keeps state, nonce and code verifier in the session, and checks the ID token:
signature, issuer, audience, nonce and times (https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation).

It is imported at the first sign-in, because a worker without sign-ins does not need it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from django.conf import settings
from django.http import HttpRequest

from core.sign_in.providers import Provider

logger = logging.getLogger("core.sign_in")

# The seconds by which the clocks of both sides may differ, that a person may take, and that discovery is believed.
CLOCK_SKEW_SECONDS = 60
_STATE_SECONDS = 600
_DISCOVERY_SECONDS = 3600

# Algorithms with a key pair: with a shared secret, or with none, whoever knows the client's secret could sign.
_ALGORITHMS = frozenset(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)) | {
    "EdDSA",
    "Ed25519",
}
# The error codes of https://datatracker.ietf.org/doc/html/rfc6749#section-4.1.2.1 and of OpenID Connect look like this.
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")

_clients: dict[Provider, tuple[float, Any]] = {}


class SignInError(Exception):
    """The message is a sentence for the person, `reason` a word for the log."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


def authorization_address(request: HttpRequest, provider: Provider, callback: str) -> str:
    """Returns the provider's address for the person, and keeps in the session what the answer must match. Raises
    SignInError."""
    with _failures(provider):
        client = _client(provider)
        begun = client.create_authorization_url(callback)
        client.save_authorize_data(request, redirect_uri=callback, **begun)
        address: str = begun["url"]
        return address


def claims_of_answer(request: HttpRequest, provider: Provider) -> tuple[dict[str, Any], str]:
    """Returns the provider's claims about the person it sent back, and the ID token. Raises SignInError.

    Each answer counts once, in the browser that asked for it.
    """
    with _failures(provider):
        client = _client(provider)
        state = request.GET.get("state", "")
        if not state or client.framework.get_state_data(request.session, state) is None:
            raise SignInError(
                "This sign-in was begun in another browser, was used already or took too long. Begin again.", "state"
            )
        error = request.GET.get("error")
        if error is not None:
            client.framework.clear_state_data(request.session, state)
            raise _refused(provider, error)
        expected = {
            "iss": {"essential": True, "value": client.server_metadata["issuer"]},
            "aud": {"essential": True, "value": provider.client_id},
        }
        token = client.authorize_access_token(request, leeway=CLOCK_SKEW_SECONDS, claims_options=expected)
        verified = token.get("userinfo")
        if verified is None:
            raise _unverified(provider, "no_id_token")
        return _joined(verified, _user_information(client, provider, token, verified["sub"])), token["id_token"]


def logout_address(provider: Provider, id_token: str, back: str) -> str:
    """Returns the provider's address to log out at; empty if it has none or is unreachable."""
    try:
        with _failures(provider):
            client = _client(provider)
            if not client.server_metadata.get("end_session_endpoint"):
                return ""
            made = client.create_logout_url(back, id_token, client_id=provider.client_id)
            address: str = made["url"]
            return address
    except SignInError as error:
        logger.warning("logout.provider_away provider=%s reason=%s", provider.name, error.reason)
        return ""


def _client(provider: Provider) -> Any:
    now = time.monotonic()
    made, client = _clients.get(provider, (0.0, None))
    if client is None or now - made > _DISCOVERY_SECONDS:
        client = _discovered(provider)
        _clients[provider] = now, client
    return client


def _discovered(provider: Provider) -> Any:
    from authlib.integrations.django_client import OAuth

    client: Any = OAuth().register(
        provider.name,
        client_id=provider.client_id,
        client_secret=provider.client_secret or None,
        server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": " ".join(provider.scopes),
            "code_challenge_method": "S256",
            "default_timeout": settings.OIDC_SECONDS,
        },
    )
    client.framework.expires_in = _STATE_SECONDS
    found = client.load_server_metadata()
    if str(found.get("issuer", "")).rstrip("/") != provider.issuer.rstrip("/"):
        raise _unusable(provider, "issuer_of_discovery")
    if not all(found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")):
        raise _unusable(provider, "discovery")
    offered = found.get("id_token_signing_alg_values_supported") or ["RS256"]
    found["id_token_signing_alg_values_supported"] = sorted(_ALGORITHMS.intersection(offered)) or ["RS256"]
    client.client_kwargs["token_endpoint_auth_method"] = _authentication(provider, found)
    return client


def _authentication(provider: Provider, discovery: dict[str, Any]) -> str:
    if not provider.client_secret:
        return "none"
    offered = discovery.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"


def _user_information(client: Any, provider: Provider, token: Any, subject: str) -> dict[str, Any]:
    if not client.server_metadata.get("userinfo_endpoint"):
        return {}
    # Authlib takes a token as expired a minute before its end, and this one has just come: its life does not matter.
    fresh = {name: token[name] for name in ("access_token", "token_type") if name in token}
    found = dict(client.userinfo(token=fresh))
    if found.get("sub") != subject:
        raise _unverified(provider, "subject_of_userinfo")
    return found


def _joined(verified: Mapping[str, Any], information: Mapping[str, Any]) -> dict[str, Any]:
    """A claim that an address is verified counts only for the address beside it."""
    joined = {**verified, **information}
    if "email" in information and information["email"] != verified.get("email"):
        joined["email_verified"] = information.get("email_verified")
    return joined


@contextmanager
def _failures(provider: Provider) -> Iterator[None]:
    """Turns errors of Authlib and requests into SignInError: their messages may quote tokens."""
    from authlib.integrations.base_client import OAuthError
    from joserfc.errors import JoseError

    try:
        yield
    except requests.RequestException as error:
        # A body that is no JSON is one of these too.
        raise SignInError(
            f"{provider.label} does not answer as it should. Try again in a minute.", type(error).__name__
        ) from error
    except OAuthError as error:
        raise _refused(provider, str(error.error)) from error
    except JoseError as error:
        claim = getattr(error, "claim", "")
        raise _unverified(provider, f"{error.error}:{claim}" if claim else error.error) from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise _unusable(provider, type(error).__name__) from error


def _refused(provider: Provider, error: str) -> SignInError:
    code = error if _ERROR_CODE.fullmatch(error) else "unknown"
    if code == "access_denied":
        return SignInError(f"{provider.label} did not let you sign in, or you broke off there.", code)
    return SignInError(f"{provider.label} refused the sign-in ({code}). Begin again, or tell an administrator.", code)


def _unverified(provider: Provider, reason: str) -> SignInError:
    return SignInError(f"The answer of {provider.label} could not be verified, so nobody was signed in.", reason)


def _unusable(provider: Provider, reason: str) -> SignInError:
    return SignInError(f"{provider.label} gave an answer that this service cannot use. Tell an administrator.", reason)
