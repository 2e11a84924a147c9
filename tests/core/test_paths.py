from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import resolve

from core.http.paths import EncodedSlashMiddleware, with_encoded_slashes

IDS = ("a/feedback", "x/requests", "a/b", "/", "//", "feedback", "%", "%2F", "a%2Fb", "ü/😀", "a b?c", "\x00", "a\x00s")


def request_with_raw_path(raw: str, variable: str, raw_path: str) -> HttpRequest:
    request: Any = RequestFactory().get(raw)
    assert request.path_info == unquote(raw)
    if variable == "scope":
        request.scope = {"raw_path": raw_path.encode()}
    else:
        request.META[variable] = raw_path
    EncodedSlashMiddleware(lambda _: HttpResponse()).process_request(request)
    found: HttpRequest = request
    return found


@pytest.mark.parametrize("variable", ["REQUEST_URI", "RAW_URI", "scope"])
@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(("end", "view"), [("", "SessionViewSet"), ("/feedback", "FeedbackViewSet")])
def test_id__encoded_in_the_path__found_whole(name: str, end: str, view: str, variable: str) -> None:
    raw = f"/api/llm/sessions/{quote(name, safe='')}{end}"
    request = request_with_raw_path(raw, variable, f"{raw}?limit=1")

    found: Any = resolve(request.path_info)

    assert (found.func.cls.__name__, found.kwargs) == (view, {"session_id": name})
    again = with_encoded_slashes(request.build_absolute_uri()).partition("testserver")[2]
    assert unquote(again) == unquote(raw)
    assert again.count("%2F") == raw.count("%2F")


@pytest.mark.parametrize("raw_path", ["", "/other%2Fpath", "http://host/api%2Fx", "//api%2Fx"])
def test_id__raw_path_missing_or_rewritten__decoded_one_counts(raw_path: str) -> None:
    request = request_with_raw_path("/api/llm/sessions/a%2Ffeedback", "REQUEST_URI", raw_path)

    assert resolve(request.path_info).kwargs == {"session_id": "a"}
