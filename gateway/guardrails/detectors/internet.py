from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import re2

from gateway.guardrails.detectors.characters import Span

_EMAIL = re2.compile(r"[\pL\pN.!#$%&'*+/=?^_`{|}~-]+@[\pL\pN](?:[\pL\pN.-]*[\pL\pN])?")
_MAX_LOCAL, _MAX_DOMAIN, _MAX_LABEL = 64, 253, 63
_QUOTING = b"'`*_{|}~/=!#$%&?^"

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re2.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_IPV6 = re2.compile(
    r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}(?:[0-9]{0,2}(?:\.[0-9]{1,3}){3})?(?:%[0-9A-Za-z]{1,15})?"
)
# `::` alone is an address only beside a word for one; elsewhere it belongs to program code.
_UNSPECIFIED_AFTER = re2.compile(
    r"(?i)(?:=|\b(?:address|addr|bind|host|ip|ipv6|server|src|dst|source|unspecified|(?:listen(?:s|ing)?|bind|bound)"
    r"(?: on| to)?)[ :\"'(]{1,3})$"
)
_VERSION_BEFORE = re2.compile(r"(?i)(?:\bver(?:sion|\.)?[ :=]{1,2}|[<>=!~]=\s?)$")
_LOOK_BACK = 24
_BEFORE_VERSION, _BETWEEN = b"rRnN.", b" :=\t\r\n\f\v"


EMAIL_PATTERNS: tuple[str, ...] = ("@",)
IP_PATTERNS: tuple[str, ...] = (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", r"::|[0-9A-Fa-f](?::[0-9A-Fa-f]{1,4}){7}")


def find_emails(data: bytes) -> Iterator[Span]:
    if b"@" not in data:
        return
    for match in _EMAIL.finditer(data):
        start, end = match.span()
        local, _, domain = data[start:end].partition(b"@")
        bare = local.lstrip(b"." + _QUOTING)
        start += len(local) - len(bare)
        if 0 < len(bare) <= _MAX_LOCAL and not bare.endswith(b".") and _is_domain(domain):
            yield start, end


def _is_domain(domain: bytes) -> bool:
    labels = domain.decode("utf-8", "replace").split(".")
    top = labels[-1]
    if len(labels) < 2 or len(domain) > _MAX_DOMAIN or not (top.startswith("xn--") or top.isalpha()) or len(top) < 2:
        return False
    return all(label and len(label) <= _MAX_LABEL for label in labels)


def find_ips(data: bytes) -> Iterator[Span]:
    """Yields addresses in order. IPv6 is searched first, because an IPv4 address may be its end."""
    sixes = list(_find_ipv6(data)) if data.count(b":") > 1 else []
    index = 0
    for start, end in _find_ipv4(data):
        while index < len(sixes) and sixes[index][1] <= start:
            yield sixes[index]
            index += 1
        if index == len(sixes) or sixes[index][0] >= end:
            yield start, end
    yield from sixes[index:]


def _find_ipv4(data: bytes) -> Iterator[Span]:
    if data.count(b".") < 3:
        return
    for match in _IPV4.finditer(data):
        start, end = match.span()
        if _stands_alone(data, start, end) and not _follows_version(data, start):
            yield start, end


def _follows_version(data: bytes, start: int) -> bool:
    before = data[max(0, start - 3) : start]
    if b"=" not in before and before.rstrip(_BETWEEN)[-1:] not in _BEFORE_VERSION:
        return False  # Most texts end here, and this check is cheaper than a search.
    return bool(_VERSION_BEFORE.search(data[max(0, start - _LOOK_BACK) : start]))


def _find_ipv6(data: bytes) -> Iterator[Span]:
    for match in _IPV6.finditer(data):
        start, end = match.span()
        if data[start : start + 1] == b":" and data[start : start + 2] != b"::":
            start += 1  # The colon ends a label before the address.
        while data[end - 1 : end] == b":" and data[end - 2 : end] != b"::" and end > start:
            end -= 1
        if not _stands_alone(data, start, end) or not _is_address(data[start:end]):
            continue
        if end - start > 2 or _speaks_of_address(data, start, end):
            yield start, end


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    before, after = data[max(0, start - 2) : start], data[end : end + 2]
    if before[-1:].isalnum() or before[-1:] in (b"_", b".") or after[:1].isalnum() or after[:1] == b"_":
        return False
    if before[-1:] == b":" and b":" in data[start:end] and before[:1] in b"0123456789abcdefABCDEF:":
        return False
    return not (after[:1] in (b".", b":") and after[1:].isalnum() and not _is_port(data, start, end))


def _is_port(data: bytes, start: int, end: int) -> bool:
    return data[end : end + 1] == b":" and b":" not in data[start:end] and data[end + 1 : end + 2].isdigit()


def _is_address(candidate: bytes) -> bool:
    try:
        ipaddress.ip_address(candidate.decode())
    except ValueError:
        return False
    return True


def _speaks_of_address(data: bytes, start: int, end: int) -> bool:
    after = data[end : end + 2]
    if after[:1] == b"/" and after[1:].isdigit():
        return True
    return bool(_UNSPECIFIED_AFTER.search(data[max(0, start - _LOOK_BACK) : start]))
