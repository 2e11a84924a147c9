"""docs/clients.md: each snippet is run as it stands there, and prints what it says."""

from __future__ import annotations

import json
import tomllib

import pytest

from tests.clients.clients import CLIENTS, Client
from tests.clients.conftest import Play
from tests.clients.page import sections, snippets_below

AGENTS = {"Claude Code", "Codex", "Gemini CLI"}
# tests/gateway/surfaces/gemini has the snippets of clients that are among the requirements of the tests themselves.
OF_THE_TESTS = {"Google Gen AI SDK"}


def test_page__sections__are_the_clients_that_are_tested() -> None:
    assert set(sections()) == {client.title for client in CLIENTS} | AGENTS | OF_THE_TESTS


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: str(client.name))
def test_snippet__run_as_it_stands__prints_what_the_page_says(play: Play, client: Client) -> None:
    snippets = snippets_below(client.title)
    assert snippets
    results = play(client)
    for snippet in snippets:
        assert "traceback" not in results[snippet.name], results[snippet.name]["traceback"]
        assert snippet.printed
        assert results[snippet.name]["printed"].splitlines() == snippet.printed


def test_settings_of_coding_agents__name_the_addresses_that_their_protocols_have() -> None:
    (claude,) = snippets_below("Claude Code")
    assert json.loads(claude.source)["env"]["ANTHROPIC_BASE_URL"].endswith("/api/gateway")
    (codex,) = snippets_below("Codex")
    (provider,) = tomllib.loads(codex.source)["model_providers"].values()
    assert provider["base_url"].endswith("/api/gateway/v1")
    assert provider["wire_api"] == "responses"
