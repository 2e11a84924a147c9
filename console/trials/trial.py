"""The page of one trial: how it stands, what each candidate did on average, and all answers side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from typing_extensions import override

from console.trials.forms import TrialForm, in_words
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import page_link, page_number
from gateway.models import Trial
from gateway.tables.trial import LABELS, TIE, UNFINISHED
from gateway.trials.errors import TrialNotFoundError
from gateway.trials.selectors import get_trial, input_entry, list_inputs, trial_detail
from gateway.trials.services import cancel_trial, delete_trial, pick_winner
from gateway.trials.shapes import TrialAnswerEntry, TrialCandidate, TrialDetail, TrialInputEntry
from prompts.diff.lines import Part, compare_lines
from prompts.models import PromptConfig

PAGE_INPUTS = 10
MAX_INPUT_PAGE = 1_000
_SUMMARY_SECONDS, _ANSWERS_SECONDS = 3, 6
_MAX_DIFF_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as the page shows it; `parts` mark what differs from A's answer, and of A's from B's."""

    entry: TrialAnswerEntry
    parts: Sequence[Part]
    request_address: str


@dataclass(frozen=True, slots=True)
class ShownInput:
    entry: TrialInputEntry
    answers: Sequence[ShownAnswer]
    request_address: str
    choices: Sequence[tuple[str, str]]


@register_page
class TrialPage(Page):
    route = "trials/<uuid:trial_id>/"
    name = "trial"
    title = "Trial"
    template = "trials/trial.html"
    parent = "trials"
    methods = ("GET", "HEAD", "POST")

    @override
    def project_id(self, **route: Any) -> UUID | None:
        found = Trial.objects.filter(pk=route["trial_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such trial.")
        return found

    @override
    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        trial = _trial(visit, route)
        return {
            "title": trial.name or "Trial",
            "trial": trial,
            "filter": _filter_in_words(trial),
            "may_edit": visit.may(Right.EDIT),
            "again_address": visit.link_if_there("trial_form", **_same_candidates(trial)),
        }

    @override
    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        trial = _trial(visit, route)
        runs = trial.state in UNFINISHED
        return [
            Panel(
                "summary",
                "Summary",
                "trials/summary.html",
                lambda: _summary(visit, trial.pk),
                is_wide=True,
                refresh_seconds=_SUMMARY_SECONDS if runs else 0,
            ),
            Panel(
                "answers",
                "Answers side by side",
                "trials/answers.html",
                lambda: _answers(visit, trial.pk),
                is_wide=True,
                refresh_seconds=_ANSWERS_SECONDS if runs else 0,
            ),
        ]

    @override
    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        trial, action = _trial(visit, route), visit.request.POST.get("action", "")
        named: dict[str, Any] = {"project_id": visit.project.pk, "trial_id": trial.pk, "actor": visit.actor}
        try:
            if action == "delete":
                delete_trial(**named)
                messages.success(visit.request, f"Deleted the trial {trial.name}.")
                return HttpResponseRedirect(visit.link("trials"))
            if action == "cancel":
                cancel_trial(**named)
                messages.success(visit.request, "Cancelled: calls that are under way are hung up.")
            if action == "pick":
                _pick(visit, named)
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        return HttpResponseRedirect(_back(visit, trial))


def _pick(visit: Visit, named: Mapping[str, Any]) -> None:
    given = visit.request.POST
    position, winner = given.get("position", ""), given.get("winner", "")
    if position.isdecimal() and len(position) < 5 and winner in (*LABELS, TIE, ""):
        pick_winner(**named, position=int(position), winner=winner)


def _back(visit: Visit, trial: Trial) -> str:
    position = visit.request.POST.get("position", "")
    place = f"#input-{position}" if position.isdecimal() else ""
    return visit.link("trial", trial.pk, p=visit.request.GET.get("p")) + place


def _trial(visit: Visit, route: Mapping[str, Any]) -> Trial:
    try:
        return get_trial(visit.project.pk, route["trial_id"])
    except TrialNotFoundError:
        raise Http404("There is no such trial.") from None


def _filter_in_words(trial: Trial) -> list[str]:
    """Returns what its inputs were chosen by, as the form names it."""
    labels = {name: str(field.label or name) for name, field in TrialForm.base_fields.items()}
    given = {name: in_words(value) for name, value in trial.filter.items() if name not in ("start_date", "end_date")}
    if config_id := given.get("prompt_config_id"):
        configs = PromptConfig.objects.for_project(trial.project_id).filter(pk=config_id)
        given["prompt_config_id"] = configs.values_list("name", flat=True).first() or config_id
    return [f"{labels.get(name, name.replace('_', ' ')).lower()} {value}" for name, value in given.items()]


def _same_candidates(trial: Trial) -> dict[str, Any]:
    """Returns the parameters of a form with this trial's candidates and filter."""
    found: dict[str, Any] = {}
    for side, candidate in zip(("a", "b"), trial.candidates, strict=False):
        found[side] = candidate.get("version_id")
        found[f"{side}_model"] = candidate.get("model")
        found[f"{side}_temperature"] = candidate.get("temperature")
    kept = {name: value for name, value in trial.filter.items() if name not in ("start_date", "end_date")}
    return {**kept, **found, "input_limit": trial.input_limit, "judge": "on" if trial.judge else ""}


def _summary(visit: Visit, trial_id: UUID) -> Mapping[str, Any]:
    detail = trial_detail(get_trial(visit.project.pk, trial_id))
    pairs = list(zip(detail["candidates"], detail["summary"], strict=True))
    return {
        "detail": detail,
        "pairs": pairs,
        "runs": detail["state"] in UNFINISHED,
        "total_cost": sum(row["total_cost_usd"] for row in detail["summary"]),
        "roll_outs": [(candidate, link) for candidate, _ in pairs if (link := _roll_out(visit, candidate))],
        "names": {candidate["label"]: candidate["title"] for candidate in detail["candidates"]},
        "leader": _leader(detail),
    }


def _roll_out(visit: Visit, candidate: TrialCandidate) -> str:
    """Returns the address of a rollout's form for the candidate's version; empty where it cannot be rolled out."""
    config_id = candidate["prompt_config_id"]
    if config_id is None:
        return ""
    config = PromptConfig.objects.for_project(visit.project.pk).filter(pk=config_id).first()
    if config is None or config.has_active_rollout or config.active_version_id == candidate["version_id"]:
        return ""
    return visit.link_if_there("rollout_form", config=config.pk, target=candidate["version_id"])


def _leader(detail: TrialDetail) -> str:
    """Returns what the verdicts say in one sentence; empty without any."""
    figures = detail["summary"]
    if not figures or not figures[0]["compared"]:
        return ""
    shares = {row["win_rate"] for row in figures}
    if len(shares) == 1:
        return f"No difference: {figures[0]['ties']} of {figures[0]['compared']} tied."
    best = max(figures, key=lambda row: row["win_rate"] or 0)
    low, share = best["win_rate_low"] or 0, best["win_rate"] or 0
    counted = f"{best['wins']} of {best['compared']} won, {best['ties']} tied"
    if len(figures) == 2 and low > 0.5:
        return f"{best['label']} is better: {share:.0%} ({counted}), and the interval begins above one half."
    return f"{best['label']} leads with {share:.0%} ({counted}); the inputs are too few to tell."


def _answers(visit: Visit, trial_id: UUID) -> Mapping[str, Any]:
    trial = get_trial(visit.project.pk, trial_id)
    query = visit.request.GET
    page = page_number(query, maximum=MAX_INPUT_PAGE)
    first = (page - 1) * PAGE_INPUTS
    rows = list(list_inputs(trial)[first : first + PAGE_INPUTS + 1])
    entries = [input_entry(row, sees_content=visit.sees_content) for row in rows[:PAGE_INPUTS]]
    labels = [candidate["label"] for candidate in trial_detail(trial)["candidates"]]
    return {
        "inputs": [_shown(visit, entry, labels) for entry in entries],
        "sees_content": visit.sees_content,
        "may_edit": visit.may(Right.EDIT),
        "trial_id": trial_id,
        "action": visit.link("trial", trial_id, p=str(page) if page > 1 else None),
        "next_url": page_link(query, p=str(page + 1)) if len(rows) > PAGE_INPUTS else "",
        "previous_url": page_link(query, p=str(page - 1) if page > 2 else "") if page > 1 else "",
        "titles": {candidate["label"]: candidate["title"] for candidate in trial_detail(trial)["candidates"]},
    }


def _shown(visit: Visit, entry: TrialInputEntry, labels: Sequence[str]) -> ShownInput:
    texts = [text_of(answer["message"]) for answer in entry["answers"]]
    parts = _compared(texts)
    answers = [
        ShownAnswer(answer, shown, _request_address(visit, answer["request_id"]))
        for answer, shown in zip(entry["answers"], parts, strict=True)
    ]
    choices = [*((label, f"{label} is better") for label in labels), (TIE, "Tie"), ("", "No choice")]
    return ShownInput(entry, answers, _request_address(visit, str(entry["request_id"])), choices)


def _compared(texts: Sequence[str]) -> list[Sequence[Part]]:
    """Returns the parts of each text: the first against the second, the others against the first."""
    whole: list[Sequence[Part]] = [(Part(text, False),) for text in texts]
    if len(texts) < 2 or max(map(len, texts)) > _MAX_DIFF_CHARACTERS or not all(texts):
        return whole
    pairs = [compare_lines(texts[0], text) for text in texts[1:]]
    found = [pairs[0][0], *(pair[1] for pair in pairs)]
    # Answers with nothing in common read better without marks.
    return [parts if len(parts) > 1 else plain for parts, plain in zip(found, whole, strict=True)]


def text_of(message: Mapping[str, Any] | None) -> str:
    """Returns the text of an answer, with its tool calls as JSON."""
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
