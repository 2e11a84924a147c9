"""Slashes inside of what a path names: a client's own id `a/feedback` is another thing than the feedback of `a`.

Servers hand Django a decoded path, in which the two are the same. `EncodedSlashMiddleware` keeps them apart as long as
the server tells the path as it was sent, and `SlashedConverter` gives views the id as the client has it.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from django.http import HttpRequest
from django.urls.converters import PathConverter
from django.utils.deprecation import MiddlewareMixin
from typing_extensions import override

# Behind a NUL, which no id has: no database takes one.
_SLASH, _NUL = "\x00s", "\x00n"
_ENCODED = re.compile("%2f", re.IGNORECASE)


class SlashedConverter(PathConverter):
    """Everything up to what follows in the pattern; a slash in it may be encoded or not."""

    @override
    def to_python(self, value: str) -> str:
        return _unmarked(value)


class EncodedSlashMiddleware(MiddlewareMixin):
    """Before the path is resolved: encoded slashes end no part of it."""

    def process_request(self, request: HttpRequest) -> None:
        raw = _raw_path(request)
        if "\x00" not in request.path_info and not _ENCODED.search(raw):
            return
        marked = unquote(_ENCODED.sub("%00s", raw.replace("%00", "%00n")))
        # A server that changes paths, or has put the service below another one, is not second-guessed.
        if not _unmarked(marked) == request.path == request.path_info:
            marked = request.path_info.replace("\x00", _NUL)
        request.path = request.path_info = marked


def with_encoded_slashes(url: str) -> str:
    """The address of a request as Django writes it, with encoded slashes where the client had them."""
    return url.replace("%00s", "%2F").replace("%00n", "%00")


def _unmarked(path: str) -> str:
    return path.replace(_SLASH, "/").replace(_NUL, "\x00")


def _raw_path(request: HttpRequest) -> str:
    """As it was sent; empty where the server does not tell it."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        return bytes(scope.get("raw_path") or b"").decode("latin-1").partition("?")[0]
    told: str = request.META.get("REQUEST_URI") or request.META.get("RAW_URI") or ""
    return urlsplit(told).path if told.startswith("/") and not told.startswith("//") else ""
