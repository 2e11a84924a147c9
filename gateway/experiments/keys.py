"""The keys by which answers and scores of earlier experiments are found again: equal keys, equal questions."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from analytics.identifiers import id_hash
from gateway.experiments.candidates import Candidate
from gateway.tables.experiment import ExperimentAnswer, ExperimentItem


def answer_key(project_id: UUID, candidate: Candidate, item: ExperimentItem, input_hash: str, repeat: int) -> str:
    """Returns the key of a candidate's answer to an item of a data set."""
    asked = [candidate.model, candidate.temperature, candidate.max_tokens, input_hash, repeat]
    return _key(str(project_id), *_prompt(candidate, item), *asked)


def score_key(
    answer: ExperimentAnswer, version_id: str, expected: Any, baseline: ExperimentAnswer | None = None
) -> str:
    """Returns the key of the score that a version of an evaluator gives to an answer, of two compared answers to the
    target's. It is empty for an answer without a key. The request is a part of it: an answer that was made again, with
    the same key, has other scores."""
    other = (baseline.key, baseline.request_id) if baseline is not None else ()
    return _key(answer.key, answer.request_id, version_id, expected, *other) if answer.key else ""


def gets_variables(candidate: Candidate, item: ExperimentItem) -> bool:
    """Returns whether the variables of an item are meant for the candidate's prompt: they were sent to it, or are those
    of an item of a data set that names no prompt."""
    if item.prompt_config_id is None and item.dataset_item_id is not None:
        return True
    return candidate.prompt_config_id in ("", str(item.prompt_config_id))


def _prompt(candidate: Candidate, item: ExperimentItem) -> list[Any]:
    if candidate.version_id:
        return [candidate.version_id, gets_variables(candidate, item)]
    return [str(item.prompt_config_id or ""), item.prompt_version]


def _key(*parts: Any) -> str:
    return id_hash(json.dumps(parts, sort_keys=True, ensure_ascii=False))
