"""Tests that the table in `docs/providers.md` matches the adapters: it is made from them and from this suite's
expectations. `tests/integrations/test_compatible_docs.py` tests the table of the look-alikes of OpenAI."""

from __future__ import annotations

from pathlib import Path

import pytest

from integrations.providers.openai.legacy_functions import LegacyFunctions
from integrations.registry import adapter_for, providers
from tests.documents.tables import differences
from tests.fakes.dialects.registry import FAKES
from tests.integrations.adapters.subject import Subject, subject_of
from tests.integrations.adapters.test_media import IMAGE_ADDRESS, PDF_ADDRESS, document, fetches, image

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "providers.md"
HEAD = "| Provider | Images | Documents | Tools | Schema | Reasoning | Signed reasoning | Cached tokens |"


def medium(subject: Subject, able: bool, part: dict[str, object]) -> str:
    if not able:
        return "refused"
    return "fetched" if fetches(subject, part) else "by address"


def row(provider: str) -> str:
    subject, can = subject_of(provider), FAKES[provider].can
    cells = [
        f"[{provider}](providers/{page_of(provider)}.md)",
        medium(subject, can.images, image(IMAGE_ADDRESS)),
        medium(subject, can.documents, document(PDF_ADDRESS)),
        "yes" if can.tools else "refused",
        "yes" if can.schema else "refused",
        "yes" if can.reasoning else "no",
        "any vendor's" if can.routes else "round trip" if can.signatures else "no",
        "yes" if can.cached_usage else "no",
    ]
    return f"| {' | '.join(cells)} |"


def page_of(provider: str) -> str:
    """Returns the name of the page on the dialect that the provider's adapter belongs to."""
    adapter = adapter_for(provider)
    inner = adapter.adapter if isinstance(adapter, LegacyFunctions) else adapter
    package = type(inner).__module__.split(".")[2]
    if package == "openai":
        return "openai" if provider in {"openai", "azure_openai"} else "compatible"
    return {"vertex": "google"}.get(package, package)


def table() -> list[str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(HEAD)
    return lines[start + 2 : lines.index("", start)]


def test_overview__table__is_what_the_adapters_do() -> None:
    expected = [row(provider) for provider in providers() if page_of(provider) != "compatible"]
    found = table()
    assert found == expected, differences("docs/providers.md", found, expected)


@pytest.mark.parametrize("provider", providers())
def test_overview__link__leads_to_a_page_that_names_the_provider(provider: str) -> None:
    page = DOCS / "providers" / f"{page_of(provider)}.md"
    assert page.is_file(), f"{page} is missing"
    assert provider in page.read_text(encoding="utf-8"), f"{page} does not name {provider}"
