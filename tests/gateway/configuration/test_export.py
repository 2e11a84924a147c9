"""`manage.py export` writes what `manage.py apply` reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.models import Dashboard
from core.keys.services import issue_key
from core.models import Project
from gateway.configuration.document import read_yaml
from gateway.configuration.written import as_yaml
from tests.factories.core import make_key, make_project
from tests.gateway.configuration.commands import SECRETS, WHOLE, applied, output
from tests.night import examples

pytestmark = pytest.mark.django_db


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secrets")
def test_export__applied_here__changes_nothing(tmp_path: Path) -> None:
    output("apply", str(WHOLE), "--yes")
    assert "No changes" in applied(output("export"), tmp_path, "--prune", "--check")


@pytest.mark.usefixtures("secrets")
def test_export__applied_elsewhere__gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output("apply", str(WHOLE), "--yes")
    written = output("export")
    for name in _variables(yaml.safe_load(written)):
        monkeypatch.setenv(name, f"https://hooks.example.com/{name}")
    Project.objects.all().delete()

    applied(written, tmp_path, "--new-keys", str(tmp_path / "keys.json"))

    assert output("export") == written


@pytest.mark.usefixtures("secrets")
def test_export__secrets__are_references_alone(tmp_path: Path) -> None:
    output("apply", str(WHOLE), "--yes")
    file = tmp_path / "all.yaml"
    output("export", "--project", "shop", "--output", str(file))
    written = file.read_text()
    assert not [secret for secret in SECRETS.values() if secret in written]
    shop = yaml.safe_load(written)["projects"]["shop"]
    assert shop["integrations"]["openai-eu"]["api_key"] == {"env": "SHOP_OPENAI_EU_API_KEY"}
    assert shop["alerts"]["Failures"]["query"]["filters"] == {"api_key": "ci", "prompt": ["support", "tone"]}


@pytest.mark.usefixtures("secrets")
def test_export__text_of_several_lines__is_a_block() -> None:
    output("apply", str(WHOLE), "--yes")
    assert "- number: 1\n            system_prompt: |\n              You answer {{ question }}.\n\n" in output("export")


def test_export__keys_of_one_name__are_told_apart(tmp_path: Path) -> None:
    project = make_project("shop")
    rows = [issue_key(project, name="ci", scopes=["gateway"])[0] for _ in range(2)]
    make_key(project, name="gone", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    written = output("export")
    assert list(yaml.safe_load(written)["projects"]["shop"]["api_keys"]) == [f"ci ({row.prefix})" for row in rows]
    assert "No changes" in applied(written, tmp_path, "--prune")


def test_export__dashboards_of_people__are_left_out() -> None:
    project = make_project("shop")
    Dashboard.objects.create(project=project, name="Mine", owner="user:ann")
    assert "dashboards" not in yaml.safe_load(output("export"))["projects"]["shop"]


def _variables(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for inner in value for name in _variables(inner)]
    if not isinstance(value, dict):
        return []
    if set(value) == {"env"}:
        return [value["env"]]
    return [name for inner in value.values() for name in _variables(inner)]


# What databases keep: no NUL, no half of a surrogate pair.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
_LINES = st.lists(st.text(st.sampled_from("ab:#-|> \t\n'\"{}[]é\u2028\x85\r"), max_size=20)).map("\n".join)
_SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    _SCALARS | _TEXTS | _LINES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3)
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=4))
def test_as_yaml__any_values__are_read_as_they_were(values: dict[str, Any]) -> None:
    assert (read_yaml("f", as_yaml(values).encode()).values or {}) == values


_COUNTS = st.none() | st.integers(1, 10_000)
_MONEY = st.none() | st.decimals(0, 10_000, places=2).map(float)
_NAMES = st.text(st.sampled_from("abcXYZ019-_. é"), min_size=1, max_size=12).filter(lambda name: name == name.strip())
_LIMITS = st.fixed_dictionaries(
    {"monthly_budget_usd": _MONEY, "rate_limit_rpm": _COUNTS, "max_concurrent_requests": st.none() | st.integers(1, 99)}
)
_VERSIONS = st.lists(
    st.fixed_dictionaries({"system_prompt": _TEXTS.filter(str.strip), "temperature": st.none() | st.floats(0, 2)}),
    min_size=1,
    max_size=4,
)
_PROMPTS = st.fixed_dictionaries({"versions": _VERSIONS, "active_version": st.just(1), "labels": st.just({"live": 1})})
_GROUPS = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["ordered", "weighted"]),
        "members": st.dictionaries(st.sampled_from(["a/b", "c/d", "e/f"]), st.integers(1, 9), min_size=1).map(
            lambda weights: [{"model": model, "weight": weight} for model, weight in weights.items()]
        ),
    }
)
_PROJECTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "settings": st.fixed_dictionaries(
            {
                "retry_max_attempts": st.integers(1, 10),
                "monthly_budget_usd": _MONEY,
                "guardrails": st.fixed_dictionaries({"blocked_tools": st.lists(_NAMES, max_size=3, unique=True)}),
            }
        ),
        "teams": st.dictionaries(_NAMES, _LIMITS, max_size=3),
        "end_users": st.dictionaries(_NAMES, _LIMITS, max_size=3),
        "model_groups": st.dictionaries(st.sampled_from(["fast", "best", "x.1"]), _GROUPS, max_size=2),
        "prompts": st.dictionaries(_NAMES.filter(lambda name: name not in ("export",)), _PROMPTS, max_size=2),
    }
)


@settings(
    max_examples=examples(5, 20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(_PROJECTS)
def test_export__any_project__applies_to_what_it_was(tmp_path: Path, project: dict[str, Any]) -> None:
    text = as_yaml({"format": "prompt-gateway/configuration", "format_version": 1, "projects": {"shop": project}})
    applied(text, tmp_path, "--prune")
    written = output("export", "--project", "shop")
    assert "No changes" in applied(written, tmp_path, "--prune")
    assert "No changes" in applied(text, tmp_path, "--prune")

    Project.objects.all().delete()
    applied(written, tmp_path)
    assert output("export", "--project", "shop") == written
