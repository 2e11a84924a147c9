"""Tests that no field vanishes without a warning: every field of the installed SDKs' request types, and every value of
their enumerations, is forwarded, translated, named in x-svc-warning or refused at every provider. A new version of an
SDK adds its new fields by itself. `silence.py` lists the fields that may be left out without a warning, and `known.py`
the known faults."""

from __future__ import annotations

from functools import cache
from typing import TypedDict

import pytest

from integrations.registry import providers
from tests.fakes.dialects.registry import distinct_providers
from tests.integrations.fields.dialects import OWN_DIALECTS
from tests.integrations.fields.known import KNOWN, Known
from tests.integrations.fields.outcomes import Outcome, observe
from tests.integrations.fields.places import faults, outermost, places_of
from tests.integrations.fields.probes import inside
from tests.integrations.fields.shapes import Record, shape_of
from tests.integrations.fields.silence import matches
from tests.integrations.fields.sources import USER, Case, cases_of, sources
from tests.night import cases

# Rows of OpenAI's dialect that differ in name and address alone lose the same fields, and so does Foundry as Anthropic.
PROVIDERS = cases(providers(), by_day=[name for name in distinct_providers() if name != "azure_anthropic"])


@cache
def faults_at(provider: str) -> dict[str, str]:
    """Returns the paths of faulty fields, with the observed outcome of each."""
    return {
        case.path: f"{finding.outcome} {finding.message}".strip()
        for place in places_of(provider)
        for case, finding in faults(place)
    }


def holds_at(known: Known, provider: str) -> bool:
    return provider in known.providers or (known.rows and provider not in OWN_DIALECTS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_field__of_any_sdk__is_forwarded_translated_named_or_refused(provider: str) -> None:
    found = faults_at(provider)
    patterns = [path for known in KNOWN if holds_at(known, provider) for path in known.paths]
    unknown = [path for path in found if not matches(path, patterns)]
    lines = "\n".join(f"  {path}: {found.get(path, '')}" for path in outermost(unknown))
    assert not unknown, f"{provider} loses:\n{lines}"


def test_known_faults__still_there__else_their_entries_go() -> None:
    """An entry without a remaining fault would hide a later one."""
    for known in KNOWN:
        at = [provider for provider in PROVIDERS if holds_at(known, provider)]
        for path in known.paths:
            assert any(matches(fault, (path,)) for provider in at for fault in faults_at(provider)), f"{path}: mended"
        for provider in known.providers:
            assert any(matches(fault, known.paths) for fault in faults_at(provider)), f"{provider}: mended"


@pytest.mark.parametrize("source", sources())
def test_case__of_every_source__differs_in_the_field_alone(source: str) -> None:
    cases = cases_of(source)
    assert len(cases) > 20
    assert all(case.before.keys() <= case.after.keys() for case in cases)
    key = "input" if source == "responses" else "messages"
    assert all(case.before[key] and case.after[key] for case in cases)


class Tomorrow(TypedDict, total=False):
    """A record with fields that the next version of an SDK may add."""

    attention_span: int
    muse: dict[str, str]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_field__of_tomorrow__is_accounted_for(provider: str) -> None:
    record = shape_of(Tomorrow)
    assert isinstance(record, Record)
    for place in places_of(provider):
        for probe in inside(record):
            case = Case("tomorrow", probe.path, {"messages": [USER]}, {"messages": [USER], **probe.after})
            assert observe(case, place).outcome in (Outcome.FORWARDED, Outcome.NAMED, Outcome.REFUSED), case.path


class Nested(TypedDict, total=False):
    kind: Tomorrow


def test_probes__of_a_type__name_each_field_and_what_is_in_it() -> None:
    record = shape_of(Nested)
    found = {probe.path: (probe.before, probe.after) for probe in inside(record)}
    assert list(found) == [".kind", ".kind.attention_span", ".kind.muse"]
    assert found[".kind"] == ({}, {"kind": {}})
    assert found[".kind.attention_span"] == ({"kind": {}}, {"kind": {"attention_span": 2}})
