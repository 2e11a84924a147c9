"""Tests that no provider is missing from this suite."""

from __future__ import annotations

import pytest

from integrations.errors import UnknownProviderError
from integrations.registry import adapter_for, is_known, providers, resolve, supported_prefixes
from tests.fakes.dialects.registry import FAKES
from tests.integrations.adapters.newcomer import NEWCOMER, registered
from tests.integrations.adapters.subject import subject_of


def test_fakes__every_provider__has_one() -> None:
    missing = sorted(set(providers()) - set(FAKES))
    assert not missing, f"no fake in tests/fakes/dialects/ for: {', '.join(missing)}"


def test_fakes__every_fake__is_a_provider_under_its_own_name() -> None:
    assert set(FAKES) <= set(providers())
    assert {name: fake.provider for name, fake in FAKES.items()} == {name: name for name in FAKES}


def test_subject__provider_without_a_fake__fails_with_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(FAKES, "openai")
    with pytest.raises(AssertionError, match=r"provider 'openai' has no fake.*CONTRIBUTING"):
        subject_of("openai")


def test_newcomer__row__is_a_provider_and_gone_afterwards() -> None:
    """A new provider needs one row; all other tests of this folder run for it too."""
    with registered():
        assert adapter_for(NEWCOMER).provider == NEWCOMER
        assert [(c.provider, c.upstream_model) for c in resolve("newcomer/x-1", {NEWCOMER})] == [(NEWCOMER, "x-1")]
        assert f"{NEWCOMER}/" in {row.prefix for row in supported_prefixes()}
    assert not is_known(NEWCOMER)
    with pytest.raises(UnknownProviderError):
        adapter_for(NEWCOMER)
