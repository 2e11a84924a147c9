from __future__ import annotations

import ipaddress
from collections.abc import Callable
from urllib.request import getproxies, proxy_bypass

from integrations.transport.request_head import Origin

ProxyFor = Callable[[Origin], str | None]
"""A function that returns an origin's proxy URL, or None when it is reached directly."""


def no_proxy(origin: Origin) -> None:
    """Returns None, so that every origin is reached directly."""


def proxies_from_environment() -> ProxyFor:
    proxies = {scheme: url for scheme, url in getproxies().items() if scheme in ("http", "https") and url}
    if not proxies:
        return no_proxy
    known: dict[Origin, str | None] = {}

    def proxy_for(origin: Origin) -> str | None:
        if origin not in known:
            known[origin] = _choose(proxies, origin)
        return known[origin]

    return proxy_for


def _choose(proxies: dict[str, str], origin: Origin) -> str | None:
    url = proxies.get(origin.scheme)
    if url is None or _is_loopback(origin.host) or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return url if "://" in url else f"http://{url}"


def _is_loopback(host: str) -> bool:
    """Recognizes this host's own servers (the sandbox, a local model), which no proxy on another machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
