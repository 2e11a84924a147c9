"""Every case gives what it expects, over HTTP and as the official clients read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.dialects.server import DialectServer
from tests.gateway.cases import checks
from tests.gateway.cases.case import OWN, Case, all_cases, load
from tests.gateway.cases.scene import CaseStage
from tests.gateway.service import GatewayService

# A value of each key that the case `plain` does not give.
WRONG: dict[str, Any] = {
    "status": 201,
    "code": "provider_error",
    "message_contains": "wrong",
    "headers": {"x-svc-fallback-used": "true"},
    "text": "Another text.",
    "tool_calls": [{"name": "find_parcel", "arguments": "{}"}],
    "events_parse": True,
    "usage": {"prompt_tokens": 22},
    "usage_any_of": [{"prompt_tokens": 22}, {"estimated": True}],
    "usage_above_zero": ["prompt_tokens", "cached_tokens"],
    "record_above_zero": ["prompt_tokens", "cache_read_tokens"],
    "record": {"cost_usd": "1"},
    "warning_names": ["top_k"],
    "upstream_calls": 2,
    "upstream_request_lacks": ["messages.0.role"],
    "upstream_request_has": {"messages.0.role": "assistant"},
    "upstream_request_has_any_of": [{"messages.0.role": "assistant"}, {"thinking": "*"}],
    "upstream_contains": ["never said"],
    "upstream_headers": {"anthropic-beta": "compact"},
    "any_of": [{"status": 201}, {"text": "Another text."}],
    "upstream_tools_include_a_function_for": ["mcp__depot/parcel"],
    "upstream_history": {"calls": [{"name": "weigh"}]},
    "calls_back": {"function_for": "weigh", "arguments": {}, "item": {"name": "measure"}},
    "alone": {"status": 500, "code": "provider_error"},
}


@pytest.fixture(scope="module")
def stage(service: GatewayService) -> Iterator[CaseStage]:
    with DialectServer() as server:
        yield CaseStage(service, server)


@pytest.mark.parametrize("case", [case for case in all_cases() if "judged_by" not in case.expected], ids=str)
def test_case__played__gives_what_it_expects(stage: CaseStage, case: Case) -> None:
    checks.check(stage.play(case))


@pytest.mark.parametrize("case", [case for case in all_cases() if "judged_by" in case.expected], ids=str)
def test_case__judged__gives_what_it_expects(
    transactional_db: None, clickhouse: None, stage: CaseStage, case: Case
) -> None:
    played = stage.play(case)

    checks.check(played)

    wrong = {**case.expected["judged_by"], "score": 0.25}
    with pytest.raises(AssertionError):
        checks.check(replace(played, case=replace(case, expected={"judged_by": wrong})))


@pytest.mark.parametrize("key", sorted(checks.KEYS - {"note", "judged_by"}))
def test_check__of_a_value_that_the_answer_does_not_have__fails(stage: CaseStage, key: str) -> None:
    case = replace(load(OWN / "plain.json"), expected={key: WRONG[key]})

    with pytest.raises((AssertionError, KeyError)):
        checks.check(stage.play(case))


def test_key__that_no_check_knows__fails(stage: CaseStage) -> None:
    case = replace(load(OWN / "plain.json"), expected={"colour": "green"})

    with pytest.raises(KeyError, match="colour"):
        checks.check(stage.play(case))
