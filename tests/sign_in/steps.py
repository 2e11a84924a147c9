from __future__ import annotations

from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.test import Client

from tests.sign_in.fake import FakeProvider

BROWSER = {"accept": "text/html,application/xhtml+xml"}


def begun(client: Client, fake: FakeProvider, target: str = "/admin/", name: str = "company") -> dict[str, str]:
    response = client.get(f"/admin/sign-in/{name}/", {"next": target}, headers=BROWSER)
    assert response.status_code == 302, response.content
    found = {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}
    fake.nonce = found["nonce"]
    return found


def returned(client: Client, state: str, name: str = "company", **parameters: str) -> Any:
    parameters = {"state": state, **(parameters or {"code": "code-1"})}
    return client.get(f"/admin/sign-in/{name}/callback/", parameters, follow=True, headers=BROWSER)


def signed_in(client: Client, fake: FakeProvider, target: str = "/admin/", name: str = "company") -> Any:
    return returned(client, begun(client, fake, target, name)["state"], name)


def text_of(response: Any) -> str:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return unescape(content.decode())
