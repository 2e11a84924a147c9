"""Tests the translations of every table: requests, answers, streams and failures of each vendor."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from anthropic.types.beta import BetaStopReason

from tests.integrations.translations.accepted import ACCEPTED
from tests.integrations.translations.examples import adapter_of, credentials_of, pieces_of, request_of
from tests.integrations.translations.outcomes import TABLES, outcome_of
from tests.tables.translated import Case

CASES = TABLES.cases()
STREAMS = [case for case in CASES if "events" in case.given]
CHECKED = [
    case
    for case in CASES
    if case.given["provider"] in ACCEPTED and "sent" in case.expected and "is_unknown_to_sdk" not in case.given
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_translation__of_a_table__as_it_says(case: Case) -> None:
    assert outcome_of(case.given) == case.expected


@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_stream__in_one_piece_and_byte_by_byte__as_event_by_event(case: Case) -> None:
    whole = b"".join(pieces_of(case.given))
    assert outcome_of(case.given, [whole]) == case.expected
    assert outcome_of(case.given, [whole[place : place + 1] for place in range(len(whole))]) == case.expected


@pytest.mark.parametrize("case", CHECKED, ids=str)
def test_request__of_a_table__accepted_by_the_vendors_sdk(case: Case) -> None:
    sent = adapter_of(case.given).build_request(request_of(case.given), credentials_of(case.given))
    ACCEPTED[case.given["provider"]](json.loads(sent.body))


def test_reasons__of_anthropics_sdk__all_in_a_table() -> None:
    told = {
        case.given["whole"].get("stop_reason")
        for case in CASES
        if case.table == "anthropic/documented" and "whole" in case.given
    }
    assert set(get_args(BetaStopReason)) <= told
