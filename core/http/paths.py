"""Slashes inside a path's ids: a client's id `a/feedback` differs from the feedback of `a`.

Servers hand Django a decoded path, in which the two are the same. `EncodedSlashMiddleware` tells them apart if the
server also passes the path as it was sent, and `SlashedConverter` gives views the client's id.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from django.http import HttpRequest
from django.urls.converters import PathConverter
from django.utils.deprecation import MiddlewareMixin

# An encoded slash is marked by a NUL character, which no id has: no database takes one.
_SLASH, _NUL = "\x00s", "\x00n"
_ENCODED = re.compile("%2f", re.IGNORECASE)


class SlashedConverter(PathConverter):
    def to_python(self, value: str) -> str:
        return _unmarked(value)


class EncodedSlashMiddleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        raw = _raw_path(request)
        if "\x00" not in request.path_info and not _ENCODED.search(raw):
            return
        marked = unquote(_ENCODED.sub("%00s", raw.replace("%00", "%00n")))
        # The path is left alone when a server has rewritten it or has put the service below another path.
        if not _unmarked(marked) == request.path == request.path_info:
            marked = request.path_info.replace("\x00", _NUL)
        request.path = request.path_info = marked


def with_encoded_slashes(url: str) -> str:
    return url.replace("%00s", "%2F").replace("%00n", "%00")


def _unmarked(path: str) -> str:
    return path.replace(_SLASH, "/").replace(_NUL, "\x00")


def _raw_path(request: HttpRequest) -> str:
    scope = getattr(request, "scope", None)
    if scope is not None:
        return bytes(scope.get("raw_path") or b"").decode("latin-1").partition("?")[0]
    raw_path: str = request.META.get("REQUEST_URI") or request.META.get("RAW_URI") or ""
    return urlsplit(raw_path).path if raw_path.startswith("/") and not raw_path.startswith("//") else ""
