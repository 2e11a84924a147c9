from __future__ import annotations

import contextlib
import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from integrations.errors import MediaError
from integrations.media.target import Target, target_of
from integrations.transport.addresses import IPAddress, is_plainly_private, is_public, literal_address
from tests.tables.cases import tabled

ADDRESS_LIKE = st.text(alphabet="htps:/@[]%.\\?#0123456789abcdefx-_ \t\n①é", max_size=40)
PRIVATE_NETWORKS = ["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "172.16.0.0/12", "100.64.0.0/10"]


def private_addresses() -> st.SearchStrategy[IPAddress]:
    return st.sampled_from(PRIVATE_NETWORKS).flatmap(lambda network: st.ip_addresses(network=network))


@given(st.one_of(st.text(max_size=60), ADDRESS_LIKE, ADDRESS_LIKE.map(lambda rest: f"http://{rest}")))
def test_target__any_text__is_an_address_or_refused(text: str) -> None:
    with contextlib.suppress(MediaError):
        target = target_of(text)
        assert target.origin.scheme in ("http", "https")
        assert target.origin.host
        assert target.origin.port > 0


@given(
    st.one_of(
        st.text(max_size=60),
        ADDRESS_LIKE,
        st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    )
)
def test_redirected__any_location__is_an_address_or_refused(location: str) -> None:
    start = target_of("https://files.example.com/a/b?c=d")
    with contextlib.suppress(MediaError):
        target = start.redirected(location)
        assert target.origin.scheme == "https"
        assert target.host == "files.example.com"


@given(private_addresses(), st.sampled_from(["{0}", "{1}", "{1:#x}", "0{2:o}.{3}", "[::ffff:{0}]", "[64:ff9b::{0}]"]))
def test_target__private_address_in_any_notation__is_recognised(address: ipaddress.IPv4Address, notation: str) -> None:
    number = int(address)
    host = notation.format(address, number, number >> 24, number & 0xFFFFFF)
    assert is_plainly_private(target_of(f"http://{host}/").origin.host)


@given(st.ip_addresses(v=4))
def test_is_public__ipv4_inside_ipv6__is_judged_alike(address: IPAddress) -> None:
    for text in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert is_public(ipaddress.IPv6Address(text)) == is_public(address)


@tabled
def test_redirected__relative_or_whole__is_where_a_browser_would_go(location: str, expected: str) -> None:
    assert str(target_of("https://files.example.com/a/b").redirected(location).url) == expected


def test_target__literal__has_no_brackets() -> None:
    target: Target = target_of("http://[2606:4700::1]:8080/a")
    assert (target.origin.host, target.origin.port) == ("2606:4700::1", 8080)
    assert literal_address(target.origin.host) is not None
