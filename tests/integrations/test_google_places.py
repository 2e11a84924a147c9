"""Tests the addresses of requests for Gemini, and the headers with their secrets."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials

ACCOUNT = json.dumps({"type": "service_account", "project_id": "from-the-file", "private_key": "x"})
MODEL = "gemini-2.5-flash"


def vertex(secret: str, base_url: str = "", *, model: str = MODEL, token: str = "", **extra: str) -> UpstreamRequest:
    request = replace(chat_request(model), access_token=token)
    return VERTEX.build_request(request, Credentials(1, "google_vertex", base_url, secret, extra))


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (MODEL, f"models/{MODEL}"),
        (f"models/{MODEL}", f"models/{MODEL}"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("../../v1/secret?key=x#y", "models/..%2F..%2Fv1%2Fsecret%3Fkey%3Dx%23y"),
        ("models/../x", "models/..%2Fx"),
    ],
)
def test_gemini__any_model_name__one_segment_behind_models(model: str, path: str) -> None:
    upstream = GEMINI.build_request(chat_request(model), credentials("google", key="AIza1"))
    assert upstream.url == f"https://generativelanguage.googleapis.com/v1beta/{path}:generateContent"


@pytest.mark.parametrize("model", ["", "models/", "..", "models/.."])
def test_gemini__no_name__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="model"):
        GEMINI.build_request(chat_request(model), credentials("google"))


def test_gemini__key__in_its_header_and_not_in_the_address() -> None:
    upstream = GEMINI.build_request(chat_request(MODEL, stream=True), credentials("google", key="AIza-secret"))
    assert upstream.url.endswith(f"/models/{MODEL}:streamGenerateContent?alt=sse")
    assert upstream.headers["x-goog-api-key"] == "AIza-secret"
    assert "AIza-secret" not in upstream.url
    assert upstream.method == "POST"


def test_gemini__base_url_of_the_integration__replaces_googles() -> None:
    upstream = GEMINI.build_request(chat_request(MODEL), credentials("google", base_url="http://proxy.test/x/"))
    assert upstream.url == f"http://proxy.test/x/models/{MODEL}:generateContent"


@pytest.mark.parametrize("secret", ["AIzaSyKey", "AQ.Ab8Key"])
def test_vertex__api_key__express_mode_without_a_project(secret: str) -> None:
    upstream = vertex(secret, project="p", location="us-east1")
    assert upstream.url == f"https://aiplatform.googleapis.com/v1/publishers/google/models/{MODEL}:generateContent"
    assert upstream.headers["x-goog-api-key"] == secret
    assert "authorization" not in upstream.headers


def test_vertex__key_of_unknown_form_and_no_project__express_mode() -> None:
    assert vertex("whatever").headers["x-goog-api-key"] == "whatever"


@pytest.mark.parametrize(
    ("location", "root"),
    [
        ("europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4"),
        ("global", "https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
        ("", "https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
    ],
)
def test_vertex__access_token__bearer_in_its_project(location: str, root: str) -> None:
    upstream = vertex("ya29.token", project="p", location=location)
    assert upstream.url == f"{root}/publishers/google/models/{MODEL}:generateContent"
    assert upstream.headers["authorization"] == "Bearer ya29.token"


@pytest.mark.parametrize("location", ["evil.test/", "a b", "evil.test#", "x@evil.test"])
def test_vertex__location_that_is_no_name__credentials_failure(location: str) -> None:
    with pytest.raises(ProviderError, match="location") as caught:
        vertex("ya29.token", project="p", location=location)
    assert caught.value.kind is FailureKind.CREDENTIALS


def test_vertex__service_account__requests_a_token_and_sends_it() -> None:
    access = Credentials(1, "google_vertex", "", ACCOUNT, {"location": "us-east1"})
    assert VERTEX.needs(chat_request(MODEL), access).access_token
    upstream = vertex(ACCOUNT, token="ya29.fresh", location="us-east1")
    assert upstream.headers["authorization"] == "Bearer ya29.fresh"
    assert "/projects/from-the-file/locations/us-east1/" in upstream.url
    assert "private_key" not in str(upstream.headers)


def test_vertex__project_named_beside_the_account__wins() -> None:
    assert "/projects/other/" in vertex(ACCOUNT, token="t", project="other").url


def test_vertex__other_secrets__need_no_token() -> None:
    access = Credentials(1, "google_vertex", "", "ya29.token", {"project": "p"})
    assert not VERTEX.needs(chat_request(MODEL), access).access_token
    assert not GEMINI.needs(chat_request(MODEL), credentials("google", key="{")).access_token


@pytest.mark.parametrize("secret", ["{broken", '{"type": "service_account"}'])
def test_vertex__account_of_no_use__credentials_failure(secret: str) -> None:
    with pytest.raises(ProviderError) as caught:
        vertex(secret)
    assert caught.value.kind is FailureKind.CREDENTIALS


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (f"google/{MODEL}", f"publishers/google/models/{MODEL}"),
        (f"publishers/google/models/{MODEL}", f"publishers/google/models/{MODEL}"),
        (f"models/{MODEL}", f"publishers/google/models/{MODEL}"),
        ("endpoints/123", "endpoints/123"),
    ],
)
def test_vertex__any_form_of_a_name__its_path(model: str, path: str) -> None:
    url = vertex("ya29.t", "http://proxy.test", model=model, project="p").url
    assert url == f"http://proxy.test/projects/p/locations/global/{path}:generateContent"


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4", "publishers/meta/models/llama-4"])
def test_vertex__another_publisher__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        vertex("ya29.t", model=model, project="p")
    assert caught.value.parameter == "model"


def test_failure__echoes_a_secret_of_ours__taken_out() -> None:
    vertex("ya29.an-access-token", project="p")
    error = VERTEX.classify_failure(401, {}, b'{"error": {"message": "bad token ya29.an-access-token"}}')
    assert error.message == "bad token [redacted]"
