"""Limits calls from web pages to the pages of this service and of origins that the operator trusts.

Browsers add Origin to a page's requests, which reveals a page whose own name resolves to this service (DNS rebinding).
Other clients send no Origin.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.http import is_same_domain

from core.errors import PermissionDeniedError


def require_known_origin(request: HttpRequest) -> None:
    """Raises PermissionDeniedError (403), and DisallowedHost (400) for a page under a Host outside ALLOWED_HOSTS."""
    origin = request.headers.get("Origin", "")
    if not origin:
        return
    own = f"{request.scheme}://{request.get_host()}"
    if origin != own and not any(_matches(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS):
        raise PermissionDeniedError("Pages of this origin may not call this service.", code="origin_not_allowed")


def _matches(origin: str, trusted: str) -> bool:
    """Returns whether the origin matches `trusted`: an origin, or one with `*.` before its domain, in Django's form."""
    scheme, _, domain = trusted.partition("://*")
    if not domain:
        return origin == trusted
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme == scheme and is_same_domain(found.netloc, domain)
