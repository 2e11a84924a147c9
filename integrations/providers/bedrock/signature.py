"""SigV4 by botocore, AWS's own library: it knows AWS's rules for canonical paths and signs without a socket."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

_SERVICE = "bedrock"


class Signer(SigV4Auth):
    """Caches the day's signing key, which saves four of a signature's five HMACs."""

    def __init__(self, key_id: str, secret: str, session_token: str | None, *, region: str) -> None:
        super().__init__(ReadOnlyCredentials(key_id, secret, session_token), _SERVICE, region)
        self._secret = secret
        self._region = region
        self._day = ""
        self._key = b""

    def signed(self, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a POST with its signature, all names in lower case."""
        request = AWSRequest("POST", url, headers=headers, data=body)
        self.add_auth(request)
        return {name.lower(): value for name, value in request.headers.items()}

    def signature(self, string_to_sign: str, request: AWSRequest) -> str:
        day = request.context["timestamp"][:8]
        if day != self._day:
            key = f"AWS4{self._secret}".encode()
            for part in (day, self._region, _SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key, self._day = key, day
        return hmac.digest(self._key, string_to_sign.encode(), "sha256").hex()
