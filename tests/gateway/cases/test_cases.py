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
from tests.tables.cases import stored

# A value of each key that the case `plain` does not give.
WRONG: dict[str, Any] = stored(__file__, "WRONG")


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
