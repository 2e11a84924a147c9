"""Tests fetching catalogs over TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from integrations.pricing.entries import CatalogError
from integrations.pricing.fetch import Fetched, fetch
from tests.integrations.pricing.catalog_server import CatalogServer, catalog_server, respond

AUTHORITY = trustme.CA()


@pytest.fixture
def secured() -> Iterator[CatalogServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    with catalog_server(context) as running:
        yield running


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "authority.pem"
    AUTHORITY.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))


@pytest.mark.usefixtures("trusted")
def test_fetch__trusted_certificate__body_and_etag(secured: CatalogServer) -> None:
    secured.serve("/a", b"{}", etag='"1"')
    assert fetch(f"{secured.url}/a") == Fetched(b"{}", '"1"')
    assert fetch(f"{secured.url}/a", etag='"1"') is None


def test_fetch__unknown_certificate__refused(secured: CatalogServer) -> None:
    secured.serve("/a", b"{}")
    with pytest.raises(CatalogError, match=r"127\.0\.0\.1: the connection is not secure"):
        fetch(f"{secured.url}/a")


@pytest.mark.usefixtures("trusted")
def test_fetch__redirect__followed_but_not_from_https_to_http(secured: CatalogServer, server: CatalogServer) -> None:
    def moved(request: BaseHTTPRequestHandler) -> None:
        respond(request, 302, b"", Location=request.path.removeprefix("/to/"))

    server.serve("/a", b"[1]", etag='"1"')
    secured.serve("/b", b"[2]")
    server.pages[f"/to/{secured.url}/b"] = secured.pages[f"/to/{server.url}/a"] = moved
    assert fetch(f"{server.url}/to/{secured.url}/b") == Fetched(b"[2]")
    for etag in ("", '"1"'):
        with pytest.raises(CatalogError, match="leads from https to http"):
            fetch(f"{secured.url}/to/{server.url}/a", etag=etag)
