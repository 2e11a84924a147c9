"""Every seed of the corpus is answered by the rules, as are changed seeds.

The cases of the suite follow from a fixed seed, by day a third of those of the night; `python -m tests.fuzzing` draws
others, for as long as its arguments say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.fuzzing.campaign import ENTRANCES, Outcome, entrance_of, fuzzed_gateway, run
from tests.fuzzing.exchange import Sent
from tests.gateway.service import GatewayService
from tests.night import examples

CASES = examples(100, 300)
SEED = 14
# The number of cases of a run that only its time limits.
UNBOUNDED = 1 << 40

chosen = [name for name in ENTRANCES if os.environ.get("FUZZ_ENTRANCE", "") in ("", name)]


@pytest.fixture(scope="module")
def service(clickhouse_engine: None) -> Iterator[GatewayService]:
    with fuzzed_gateway() as running:
        yield running


@pytest.mark.parametrize("name", chosen)
def test_corpus__as_it_is__answered_as_documented(service: GatewayService, name: str) -> None:
    with entrance_of(name, service) as entrance:
        for seed in entrance.seeds:
            entrance.send(entrance.unchanged(seed))


@pytest.mark.parametrize("name", chosen)
def test_entrance__changed_seeds__no_failure_and_no_leak(
    service: GatewayService, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with entrance_of(name, service) as entrance:
        if case := os.environ.get("FUZZ_CASE"):
            outcome = run(entrance, seed=_seed(), cases=1, first=int(case))
        elif seconds := os.environ.get("FUZZ_SECONDS"):
            outcome = run(entrance, seed=_seed(), cases=UNBOUNDED, seconds=float(seconds) / len(chosen))
        else:
            outcome = run(entrance, seed=_seed(), cases=CASES)
        with capsys.disabled():
            _log(outcome)
        assert not outcome.found, _listed(outcome)
        _assert_both_kinds_of_answers(outcome)


def _seed() -> int:
    return int(os.environ.get("FUZZ_SEED") or SEED)


def _assert_both_kinds_of_answers(outcome: Outcome) -> None:
    """One kind of answers alone would leave half of the gateway untested."""
    if outcome.cases < 100:
        return
    accepted = sum(count for status, count in outcome.statuses.items() if 200 <= status < 300)
    refused = sum(count for status, count in outcome.statuses.items() if status >= 400)
    assert min(accepted, refused) >= outcome.cases // 50, outcome.statuses


def _log(outcome: Outcome) -> None:
    sys.stdout.write(f"{outcome.entrance}: {outcome.cases} cases, statuses {outcome.statuses}\n")


def _listed(outcome: Outcome) -> str:
    return "\n\n".join(f"{found.problem}\n  {found.replay}\n  {_shown(found.sent)}" for found in outcome.found)


def _shown(sent: Sent) -> str:
    return f"{sent.method} {sent.path} {(sent.body if sent.raw is None else sent.raw)!r:.600}"
