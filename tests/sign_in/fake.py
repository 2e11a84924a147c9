"""An OpenID provider whose answers a test decides, for those that no real program gives: forged, stale, of the wrong
form."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "gateway", "client-secret-of-the-tests"


class FakeProvider:
    """`claims` are added to the ID token, `token` to the answer that has it, `user_information` is what the other
    endpoint answers; `replaced` are whole answers by path. `posted` has the forms that the token endpoint got."""

    def __init__(self) -> None:
        self.key, self.other_key = (RSAKey.generate_key(2048, {"kid": kid}) for kid in ("known", "unknown"))
        self.signing_key: RSAKey | OctKey | None = self.key
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "known"}
        self.claims: dict[str, Any] = {}
        self.token: dict[str, Any] = {}
        self.user_information: dict[str, Any] | None = None
        self.replaced: dict[str, tuple[int, Any]] = {}
        self.discovery: dict[str, Any] = {}
        self.posted: list[Mapping[str, list[str]]] = []
        self.nonce = ""
        self.address = ""

    def answer(self, path: str) -> tuple[int, Any]:
        if path in self.replaced:
            return self.replaced[path]
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._discovery()
            case "/keys":
                return 200, {"keys": [self.key.as_dict(private=False)]}
            case "/token":
                return 200, {
                    "access_token": "access",
                    "token_type": "Bearer",
                    "id_token": self.id_token(),
                    **self.token,
                }
            case "/userinfo":
                return 200, {"sub": "subject-1", **(self.user_information or {})}
        return 404, {}

    def id_token(self) -> str:
        now = int(time.time())
        claims = {
            "iss": self.address, "aud": CLIENT_ID, "sub": "subject-1", "iat": now, "exp": now + 300,
            "nonce": self.nonce, "preferred_username": "ada", **self.claims,
        }  # fmt: skip
        if self.signing_key is None:
            # joserfc warns of what it is asked for here.
            parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
            return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), ""])
        return jwt.encode(self.header, claims, self.signing_key, algorithms=["RS256", "HS256"])

    def _discovery(self) -> dict[str, Any]:
        endpoints = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        if self.user_information is not None:
            endpoints["userinfo_endpoint"] = "userinfo"
        return {
            "issuer": self.address,
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **{name: f"{self.address}/{path}" for name, path in endpoints.items()},
            **self.discovery,
        }


@contextmanager
def serving(provider: FakeProvider) -> Iterator[FakeProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            provider.posted.append(parse_qs(body.decode()))
            self._answer()

        def _answer(self) -> None:
            status, answer = provider.answer(self.path)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
