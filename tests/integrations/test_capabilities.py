from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from integrations.capabilities import lookup, shipped
from integrations.capabilities.lookup import Capabilities, RequestNeeds, can, capabilities_of
from integrations.capabilities.shipped import CAPABILITIES, build
from integrations.pricing.entries import CatalogError
from integrations.registry import is_known
from tests.recordings import shared_file
from tests.tables.cases import stored, tabled

CATALOG_A: dict[str, Any] = stored(__file__, "CATALOG_A")
CATALOG_B: dict[str, Any] = stored(__file__, "CATALOG_B")


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replaces the shipped list by the two small catalogs above."""
    file = tmp_path / "capabilities.json"
    file.write_text(build(CATALOG_A, CATALOG_B))
    monkeypatch.setattr(shipped, "CAPABILITIES", file)
    _forget()
    yield file
    _forget()


def _forget() -> None:
    capabilities_of.cache_clear()
    lookup._table.cache_clear()


@pytest.mark.usefixtures("listed")
def test_build__model_of_both_catalogs__has_the_abilities_of_either() -> None:
    assert capabilities_of("openai", "gpt-x") == Capabilities(
        context_window=2000,
        max_output_tokens=100,
        images=True,
        audio=True,
        video=False,
        tools=True,
        parallel_tools=True,
        reasoning=False,
    )


@pytest.mark.usefixtures("listed")
def test_build__ability_in_no_catalog__is_unknown() -> None:
    assert capabilities_of("openai", "only-a") == Capabilities(schema=True)
    assert capabilities_of("openai", "odd") == Capabilities(schema=False)
    for model in ("says-nothing", "painter", "embedding", "sample_spec"):
        assert capabilities_of("openai", model) is None


@pytest.mark.usefixtures("listed")
def test_build__text_model__reads_no_documents_unless_its_service_does() -> None:
    text_only, reader = capabilities_of("openai", "text-only"), capabilities_of("mistral", "reader")
    assert text_only is not None
    assert reader is not None
    assert (text_only.images, text_only.documents, text_only.context_window) == (False, False, None)
    assert (reader.images, reader.documents) == (False, None)


def test_build__bedrock_regions__are_one_model(listed: Path) -> None:
    assert json.loads(listed.read_bytes())["bedrock"] == {"vendor.model-v1:0": [500, None, ""]}


@pytest.mark.parametrize("broken", [None, [], {}, "x"])
def test_build__no_catalog__is_refused(broken: Any) -> None:
    with pytest.raises(CatalogError):
        build(broken, CATALOG_B)
    with pytest.raises(CatalogError):
        build(CATALOG_A, broken)


def test_build_capabilities__two_files__writes_the_list(tmp_path: Path) -> None:
    for name, catalog in (("a", CATALOG_A), ("b", CATALOG_B)):
        (tmp_path / name).write_text(json.dumps(catalog))
    output = tmp_path / "out.json"
    arguments = ["--catalog-a", str(tmp_path / "a"), "--catalog-b", str(tmp_path / "b"), "--output", str(output)]
    call_command("build_capabilities", *arguments, stdout=StringIO())
    assert json.loads(output.read_bytes())["openai"]["gpt-x"] == [2000, 100, "iatp-vr"]
    (tmp_path / "b").write_text("{")
    with pytest.raises(CommandError):
        call_command("build_capabilities", *arguments, stdout=StringIO())


def test_shipped_list__of_known_providers__small() -> None:
    listed = json.loads(CAPABILITIES.read_bytes())
    assert CAPABILITIES.stat().st_size < 400_000
    assert len(listed) >= 18
    assert [provider for provider in listed if not is_known(provider)] == []


SHARED = [
    (a, b) for a, b in [(shared_file("pricing", "catalog_a.json"), shared_file("pricing", "catalog_b.json"))] if a and b
]


@pytest.mark.parametrize(("first", "second"), SHARED)
def test_shipped_list__built_from_the_catalogs__is_up_to_date(first: Path, second: Path) -> None:
    built = build(json.loads(first.read_bytes()), json.loads(second.read_bytes()))
    assert built == CAPABILITIES.read_text(), "write the list anew: `manage.py build_capabilities`"


# The facts are those of the vendors' model pages.
@tabled
def test_capabilities__well_known_model(provider: str, model: str, context: int | None, able: str, unable: str) -> None:
    found = capabilities_of(provider, model)
    assert found is not None
    assert context in (None, found.context_window)
    assert {name: getattr(found, name) for name in able.split()} == dict.fromkeys(able.split(), True)
    assert {name: getattr(found, name) for name in unable.split()} == dict.fromkeys(unable.split(), False)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "no-such-model"), ("nobody", "gpt-4o"), ("ollama", "llama3.2"), ("bedrock", ""), ("openai", "/")],
)
def test_capabilities__unknown__is_none_and_able(provider: str, model: str) -> None:
    assert capabilities_of(provider, model) is None
    assert can(provider, model, RequestNeeds(images=True, tools=True, schema=True, tokens=10**9))


@pytest.mark.parametrize(
    ("needs", "able"),
    [
        (RequestNeeds(), True),
        (RequestNeeds(tools=True, tokens=128_000), True),
        (RequestNeeds(tokens=256_001), False),
        (RequestNeeds(images=True), False),
        (RequestNeeds(documents=True), False),
        (RequestNeeds(audio=True), False),
        (RequestNeeds(video=True), False),
        (RequestNeeds(schema=True), True),  # Neither catalog lists the ability to follow a schema.
    ],
)
def test_can__known_text_model__only_what_is_known_to_fail_is_refused(needs: RequestNeeds, able: bool) -> None:
    assert can("cohere", "command-a-03-2025", needs) is able


@pytest.mark.usefixtures("listed")
def test_can__tools_and_schema_known_to_be_missing__refused() -> None:
    assert not can("openai", "odd", RequestNeeds(schema=True))
    assert can("openai", "odd", RequestNeeds(tools=True))


def test_capabilities__many_threads_at_first_use__agree() -> None:
    _forget()
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: capabilities_of("openai", "gpt-4o"), range(64)))
    assert len(found) == 1
