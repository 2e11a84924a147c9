"""docs/clients.md: each snippet is run as it stands there, and prints what it says."""

from __future__ import annotations

import pytest

from tests.clients.agents.programs import PROGRAMS
from tests.clients.clients import CLIENTS, Client
from tests.clients.conftest import Play
from tests.clients.page import sections, snippets_below

# tests/gateway/surfaces/gemini has the snippets of clients that are among the requirements of the tests themselves.
OF_THE_TESTS = {"Google Gen AI SDK"}


def test_page__sections__are_the_clients_that_are_tested() -> None:
    titles = {one.title for one in (*CLIENTS, *PROGRAMS)}
    assert set(sections()) == titles | OF_THE_TESTS | {"Coding agents"}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: str(client.name))
def test_snippet__run_as_it_stands__prints_what_the_page_says(play: Play, client: Client) -> None:
    snippets = snippets_below(client.title)
    assert snippets
    results = play(client)
    for snippet in snippets:
        assert "traceback" not in results[snippet.name], results[snippet.name]["traceback"]
        assert snippet.printed
        assert results[snippet.name]["printed"].splitlines() == snippet.printed
