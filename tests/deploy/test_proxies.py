from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.live.service import ROOT
from tests.tables.cases import tabled

FOLDER = ROOT / "deploy" / "proxies"
NAMES = ("haproxy.cfg", "nginx.conf", "Caddyfile")
# A web worker closes a connection that has been quiet for so long: a proxy has to do it first.
_WORKER = (ROOT / "config" / "supervisor" / "web_worker.py").read_text(encoding="utf-8")
_DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def _text(name: str) -> str:
    return re.sub(r"^\s*#.*\n", "", (FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)


def _seconds(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    assert found is not None
    return int(found[1])


def test_samples__are_those_that_are_tested() -> None:
    assert sorted(path.name for path in Path(FOLDER).iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_sample__hosts__are_three_on_the_usual_port(name: str) -> None:
    hosts = set(re.findall(r"10\.0\.0\.\d+:(\d+)", _text(name)))

    assert len(re.findall(r"10\.0\.0\.\d+:", _text(name))) == 3
    assert f"EXPOSE {''.join(hosts)}\n" in _DOCKERFILE


@tabled
def test_sample__patience__is_longer_than_that_of_the_gateway_with_providers(name: str, pattern: str) -> None:
    assert _seconds(_text(name), pattern) > settings.UPSTREAM_TOTAL_SECONDS


@tabled
def test_sample__kept_connections__are_closed_by_the_proxy_first(name: str, pattern: str) -> None:
    assert _seconds(_text(name), pattern) < _seconds(_WORKER, r"timeout_keep_alive=(\d+)")


def test_samples__streams__pass_unbuffered() -> None:
    assert "proxy_buffering off;" in _text("nginx.conf") and "proxy_request_buffering off;" in _text("nginx.conf")
    assert 'proxy_set_header Connection "";' in _text("nginx.conf") and "proxy_http_version 1.1;" in _text("nginx.conf")
    assert "flush_interval -1" in _text("Caddyfile")


def test_samples__largest_body__is_the_gateway_s() -> None:
    size = settings.GATEWAY_FILE_BYTES >> 20

    assert f"client_max_body_size {size}m;" in _text("nginx.conf")
    assert f"max_size {size}MiB" in _text("Caddyfile")


def test_samples__who_speaks_tls__is_said_to_the_host_by_the_proxy_alone() -> None:
    assert "proxy_set_header X-Forwarded-Proto $scheme;" in _text("nginx.conf")
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in _text("nginx.conf")
    assert "http-request set-header X-Forwarded-Proto https" in _text("haproxy.cfg")
    # `option forwardfor` adds the client's address to what is there.
    assert "http-request del-header X-Forwarded-For" in _text("haproxy.cfg")


def test_samples__readiness__is_asked_where_the_proxy_can() -> None:
    assert "option httpchk GET /readyz" in _text("haproxy.cfg")
    assert "health_uri /readyz" in _text("Caddyfile")


def test_nginx__blocks__are_closed() -> None:
    text = _text("nginx.conf")
    statements = [line.strip() for line in text.splitlines() if line.strip()]

    assert text.count("{") == text.count("}")
    assert [line for line in statements if not line.endswith((";", "{", "}"))] == []
