"""The npm package oidc-provider, an OpenID provider, as a process of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.clients import ENVIRONMENTS

_SCRIPT = Path(__file__).parent / "provider" / "provider.mjs"
CLIENT = {"id": "gateway", "secret": "client-secret-of-the-tests"}


@contextmanager
def openid_provider(issuer: str, gateway: str, name: str, accounts: Mapping[str, Any]) -> Iterator[None]:
    # Node looks for packages from the script's own folder.
    folder = ENVIRONMENTS / "openid"
    shutil.copy(_SCRIPT, folder)
    given = {
        "port": int(issuer.rpartition(":")[2]),
        "client": CLIENT,
        "redirect": f"{gateway}/admin/sign-in/{name}/callback/",
        "after_logout": f"{gateway}/admin/login/",
        "accounts": accounts,
    }
    process = subprocess.Popen(
        ["node", folder / _SCRIPT.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        while line and not line.startswith("serving"):
            line = process.stdout.readline()
        assert line, "the provider ended before it served"
        yield
    finally:
        process.kill()
        process.communicate()


def free_issuer() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"http://127.0.0.1:{found.getsockname()[1]}"
