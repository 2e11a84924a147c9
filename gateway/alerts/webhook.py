"""Posts alerts to public addresses only: anyone with the right to change settings chooses the address."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from django.conf import settings

from gateway.alerts.errors import DeliveryError
from gateway.protocol.headers import PREFIX
from integrations.transport.addresses import PrivateAddressError
from integrations.transport.resolver import AiohttpResolver, Resolver, any_address, only_public
from integrations.transport.tls import client_context

SIGNATURE = f"{PREFIX}signature"
_SECONDS = 10.0


def signature(body: bytes, secret: str, at: int) -> str:
    """Returns the signature header: `t=<Unix time>,v1=<HMAC-SHA256 of "<t>.<body>" in hexadecimal>`."""
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def post(url: str, body: bytes, secret: str = "", *, allow_private: bool = False) -> None:
    """Posts a body, signed if `secret` is given. `allow_private` permits a private address that an operator chose.

    Redirects are not followed. Raises DeliveryError unless the receiver answers 2xx.
    """
    try:
        signed = {SIGNATURE: signature(body, secret, int(time.time()))} if secret else {}
        status = asyncio.run(_post(url, body, signed, allow_private))
    except PrivateAddressError:
        raise DeliveryError("the address is on a private network", is_final=True) from None
    except TimeoutError:
        raise DeliveryError(f"no answer within {_SECONDS:.0f} seconds") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # The error's text may hold the address, which may contain a token.
        raise DeliveryError(type(error).__name__) from None
    if not 200 <= status < 300:
        raise DeliveryError(f"the receiver answered {status}")


async def _post(url: str, body: bytes, signed: Mapping[str, str], allow_private: bool) -> int:
    resolver = Resolver(any_address if allow_private or settings.ALLOW_PRIVATE_UPSTREAMS else only_public)
    parts = urlsplit(url)
    # A literal IP address is never resolved, so it is checked here.
    await resolver.addresses(parts.hostname or "", parts.port or 443)
    connector = aiohttp.TCPConnector(
        ssl=client_context(), force_close=True, use_dns_cache=False, resolver=AiohttpResolver(resolver)
    )
    headers = {"content-type": "application/json", "user-agent": "prompt-gateway", **signed}
    options: dict[str, Any] = {"data": body, "headers": headers, "allow_redirects": False}
    async with (
        asyncio.timeout(_SECONDS),
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.post(url, **options) as response,
    ):
        return response.status
