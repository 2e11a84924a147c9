"""The rule for `Host` on all paths: callers with a key may use any name, all others only the names in ALLOWED_HOSTS.

The rule protects browsers, which send a session by themselves, and the links in pages. A key is never sent by itself,
and load balancers, containers and probes use many names. Gateway paths and `/healthz` are exempt: they take keys, or
nothing.
"""

from __future__ import annotations

import logging

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port
from django.utils.deprecation import MiddlewareMixin

from core.errors import UnknownHostError
from core.http.failures import failure

logger = logging.getLogger("core.hosts")

_MAX_CHARACTERS = 100


class HostMiddleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        try:
            require_known_host(request)
        except UnknownHostError as error:
            return failure(request, error)
        return None


def require_known_host(request: HttpRequest) -> None:
    try:
        request.get_host()
    except DisallowedHost:
        host = request._get_raw_host()  # type: ignore[attr-defined]  # as get_host() reads it before it checks
        if _by_key(request) and split_domain_port(host)[0]:
            request.get_host = lambda: host  # type: ignore[method-assign]
            return
        shown = ascii(host[:_MAX_CHARACTERS])
        logger.warning("host.refused host=%s setting=ALLOWED_HOSTS", shown)
        message = f"Host: {shown} is no name of this service; ALLOWED_HOSTS lists those it has."
        raise UnknownHostError(message) from None


def _by_key(request: HttpRequest) -> bool:
    return request.path.startswith("/api/") and "Authorization" in request.headers
