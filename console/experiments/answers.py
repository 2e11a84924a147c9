from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from core.roles import Right
from core.ui.pages import Visit
from core.ui.tables import page_link, page_number
from gateway.experiments.candidates import candidates_of
from gateway.experiments.selectors import get_experiment, item_entry, list_items
from gateway.experiments.shapes import ExperimentAnswerEntry, ExperimentItemEntry
from gateway.models import Experiment
from gateway.tables.experiment import TIE
from prompts.diff.lines import PromptLinePart, compare_lines

PAGE_ITEMS = 10
MAX_ITEM_PAGE = 1_000
_MAX_DIFF_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """`parts` mark what differs from A's answer; those of A mark what differs from B's."""

    entry: ExperimentAnswerEntry
    parts: Sequence[PromptLinePart]
    request_address: str


@dataclass(frozen=True, slots=True)
class ShownItem:
    entry: ExperimentItemEntry
    answers: Sequence[ShownAnswer]
    request_address: str
    choices: Sequence[tuple[str, str]]
    to_dataset: str
    is_gone: bool


def answers_context(visit: Visit, experiment_id: UUID) -> Mapping[str, Any]:
    experiment = get_experiment(visit.project.pk, experiment_id)
    query = visit.request.GET
    page = page_number(query, maximum=MAX_ITEM_PAGE)
    first = (page - 1) * PAGE_ITEMS
    rows = list(list_items(experiment)[first : first + PAGE_ITEMS + 1])
    entries = [item_entry(row, sees_content=visit.sees_content) for row in rows[:PAGE_ITEMS]]
    labels = [candidate.label for candidate in candidates_of(experiment.candidates)]
    return {
        "items": [_shown(visit, experiment, entry, labels) for entry in entries],
        "sees_content": visit.sees_content,
        "may_edit": visit.may(Right.EDIT),
        "experiment_id": experiment_id,
        "is_shadow": experiment.is_shadow,
        "repeats": experiment.repeats,
        "action": visit.link("experiment", experiment_id, p=str(page) if page > 1 else None),
        "next_url": page_link(query, p=str(page + 1)) if len(rows) > PAGE_ITEMS else "",
        "previous_url": page_link(query, p=str(page - 1) if page > 2 else "") if page > 1 else "",
    }


def _shown(visit: Visit, experiment: Experiment, entry: ExperimentItemEntry, labels: Sequence[str]) -> ShownItem:
    texts = [text_of(answer["message"]) for answer in entry["answers"]]
    parts = _compared(texts, len(labels))
    answers = [
        ShownAnswer(answer, shown, _request_address(visit, answer["request_id"]))
        for answer, shown in zip(entry["answers"], parts, strict=True)
    ]
    choices = [*((label, f"{label} is better") for label in labels), (TIE, "Tie"), ("", "No choice")]
    request_id = entry["request_id"]
    is_gone = request_id is None and entry["dataset_item_id"] is None
    return ShownItem(
        entry,
        answers,
        _request_address(visit, str(request_id)) if request_id else "",
        choices,
        "" if is_gone else to_dataset_address(visit, experiment, str(entry["position"])),
        is_gone,
    )


def _compared(texts: Sequence[str], count: int) -> list[Sequence[PromptLinePart]]:
    """Compares the first text with the second, the others with the first. With repeats, when texts outnumber `count`,
    it compares none."""
    whole: list[Sequence[PromptLinePart]] = [(PromptLinePart(text, False),) for text in texts]
    if len(texts) != count or len(texts) < 2 or max(map(len, texts)) > _MAX_DIFF_CHARACTERS or not all(texts):
        return whole
    pairs = [compare_lines(texts[0], text) for text in texts[1:]]
    found = [pairs[0][0], *(pair[1] for pair in pairs)]
    # Answers with nothing in common read better without marks.
    return [parts if len(parts) > 1 else plain for parts, plain in zip(found, whole, strict=True)]


def text_of(message: Mapping[str, Any] | None) -> str:
    if message is None:
        return ""
    content = message.get("content")
    texts = [content if isinstance(content, str) else _pretty(content)] if content else []
    texts += [_pretty(message["tool_calls"])] if message.get("tool_calls") else []
    texts += [str(message["refusal"])] if message.get("refusal") and not texts else []
    return "\n".join(texts)


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _request_address(visit: Visit, request_id: str | None) -> str:
    return visit.link_if_there("analytics_requests_detail", visit.project.pk, request_id) if request_id else ""


def to_dataset_address(visit: Visit, experiment: Experiment, positions: str = "") -> str:
    """Returns where these items, or all, are taken into a data set; empty if the person may not."""
    if not visit.may(Right.EDIT):
        return ""
    return visit.link_if_there("datasets", experiment_id=str(experiment.pk), positions=positions)
