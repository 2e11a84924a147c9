"""Runs the commands, and answers with what they print or with how they refuse."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

FILES = Path(__file__).parent / "files"
WHOLE = FILES / "whole.yaml"
SECRETS = {
    "SHOP_ALERTS": "https://hooks.example.com/T0/secret-of-the-webhook",
    "ANTHROPIC_KEY": "sk-ant-secret-of-anthropic",
    "TEAM_HEADER": "secret-of-the-team",
    "AZURE_EU_KEY": "secret-of-azure-eu",
    "CI_KEY": "svc_secret-of-the-build-0123456789",
    "SLACK_URL": "https://chat.example.com/services/secret-of-slack",
    "COLLECTOR_TOKEN": "Bearer secret-of-the-collector",
}


def output(*command: str) -> str:
    out = StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def applied(text: str, folder: Path, *options: str) -> str:
    """Applies a text without asking, and returns what was printed."""
    file = folder / "gateway.yaml"
    file.write_text(text, encoding="utf-8")
    return output("apply", str(file), "--yes", *options)


def refusal(text: str | bytes, folder: Path, *options: str) -> str:
    """Returns why a text is refused, with `FILE` for its path."""
    file = folder / "gateway.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CommandError) as raised:
        output("apply", str(file), "--yes", *options)
    return str(raised.value).replace(str(file), "FILE")


def project(*lines: str) -> str:
    """Returns a file with these lines of the project `shop`; the first of them is in its line 5."""
    head = ["format: prompt-gateway/configuration", "format_version: 1", "projects:", "  shop:"]
    return "\n".join(head + ["    " + line for line in lines]) + "\n"
