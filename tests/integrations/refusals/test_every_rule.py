"""Walks the tables: each rule has a source, and a test triggers it."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

from tests.fakes.dialects.rules import anthropic, google, openai, responses, thinkers, vllm
from tests.fakes.dialects.rules.table import Table
from tests.integrations.refusals import (
    test_anthropic,
    test_google,
    test_openai,
    test_responses,
    test_thinkers,
    test_vllm,
)

TABLES: dict[str, tuple[Table, Collection[str]]] = {
    "openai": (openai.CHAT, test_openai.REFUSED),
    "responses": (responses.RESPONSES, test_responses.REFUSED),
    "vllm": (vllm.CHAT, test_vllm.REFUSED),
    "deepseek": (thinkers.DEEPSEEK, ["call without its reasoning"]),
    "xiaomi_mimo": (thinkers.MIMO, ["call without its reasoning"]),
    "moonshot": (thinkers.MOONSHOT, test_thinkers.REFUSED),
    "anthropic": (anthropic.MESSAGES, test_anthropic.REFUSED),
    "google": (google.GEMINI, test_google.REFUSED | test_google.REFUSED_AT_GEMINI),
    "google_vertex": (google.VERTEX, test_google.REFUSED | test_google.REFUSED_AT_VERTEX),
}
# A page of the vendor, a report in public, or a recorded exchange.
_SOURCE = re.compile(r"https://\S+|recording \w+/\S+")


@pytest.mark.parametrize("name", TABLES)
def test_table__every_rule__has_a_source_and_a_test_of_its_own_name(name: str) -> None:
    table, triggered = TABLES[name]
    names = [rule.name for rule in table.rules]
    assert len(set(names)) == len(names)
    assert sorted(names) == sorted(triggered)
    assert [rule.name for rule in table.rules if not _SOURCE.fullmatch(rule.source)] == []
