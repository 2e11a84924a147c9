from __future__ import annotations

import json
import re

import pytest
import yaml
from django.test import Client

from core.openapi.views import document

# Closing a response closes the database connections of its thread.
pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return Client()


def test_document__without_credentials__is_yaml(client: Client) -> None:
    answer = client.get("/api/schema/")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/vnd.oai.openapi")
    assert yaml.safe_load(answer.content)["paths"].keys() == document()["paths"].keys()


@pytest.mark.parametrize(("query", "accept"), [("?format=json", "*/*"), ("", "application/json")])
def test_document__json_requested__is_json(client: Client, query: str, accept: str) -> None:
    answer = client.get(f"/api/schema/{query}", headers={"accept": accept})

    assert answer.status_code == 200
    assert json.loads(answer.content)["openapi"].startswith("3.1.")


@pytest.mark.parametrize("page", ["docs", "redoc"])
def test_page__everything_it_loads__is_served_here(client: Client, page: str) -> None:
    answer = client.get(f"/api/{page}/")
    text = answer.content.decode()

    assert answer.status_code == 200
    loaded = re.findall(r'(?:src|href|spec-url)="([^"]+)"', text)
    assert loaded
    for address in loaded:
        assert address.startswith("/") and not address.startswith("//"), address
        loaded_answer = client.get(address)
        assert loaded_answer.status_code == 200, address
        loaded_answer.close()
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert re.search(r"<script>", text) is None


def test_swagger__its_script__loads_the_document_from_here(client: Client) -> None:
    (script,) = re.findall(r'src="([^"]*\?script[^"]*)"', client.get("/api/docs/").content.decode())
    answer = client.get(script)

    assert answer.headers["Content-Type"].startswith("application/javascript")
    assert "/api/schema/" in answer.content.decode()
    assert "https://" not in answer.content.decode()
