"""The form of a definition with the dry run beside it, shared by the pages of a new and a known evaluator."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString
from rest_framework.exceptions import ValidationError as InvalidParameters

from analytics.evaluators.definitions import Definition, Pairwise, read_definition
from analytics.models.evaluators import EVALUATOR_DESCRIPTION_CHARACTERS, EVALUATOR_NAME_CHARACTERS
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import parse_parameters
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder, sample_requests
from console.evaluators.kinds import KIND_TITLES, KindForm
from core.errors import ApplicationError, ValidationError
from core.ui.formats import NONE, money
from core.ui.forms import error_texts
from core.ui.marks import id_link, status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from gateway.evaluations.dry_run import MAX_REQUESTS, try_evaluator
from gateway.evaluations.serializers import EvaluatorDryRun, dry_run_entry
from gateway.playground.catalog import list_models

TRY = "try"
_MAX_MODELS = 60
_ASKS_A_CHAT_MODEL = ("judge", "pairwise")


_NEWEST = 5
_CLIENTS = "gateway"
_REQUEST = "analytics_requests_detail"


class TryForm(forms.Form):
    """The requests to try an evaluator on: the named ones, else the newest that match a filter."""

    request_ids = forms.CharField(
        required=False,
        max_length=2_000,
        label="Requests",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=f"Ids of the request log, at most {MAX_REQUESTS}. Empty: the newest ones below.",
    )
    newest = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_REQUESTS, initial=_NEWEST, label="Or the newest"
    )
    filter = forms.CharField(
        required=False,
        max_length=4_000,
        label="That match",
        help_text="As in the address of Requests, such as model=openai/gpt-4o&user_id=ann. Empty: all of the range.",
    )
    expected = forms.CharField(
        required=False,
        max_length=100_000,
        label="Expected answer",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="For evaluators that compare with one: a text, or a JSON object or list.",
    )

    def clean_request_ids(self) -> list[UUID]:
        texts = [text for text in re.split(r"[\s,;]+", self.cleaned_data["request_ids"]) if text]
        if len(texts) > MAX_REQUESTS:
            raise forms.ValidationError(f"At most {MAX_REQUESTS} requests can be tried at once.")
        try:
            return list(dict.fromkeys(UUID(text) for text in texts))
        except ValueError:
            raise forms.ValidationError("Ids of requests are expected, such as those of their pages.") from None

    def clean_filter(self) -> Mapping[str, Any]:
        given = parse_parameters(self.cleaned_data["filter"])
        unknown = sorted(set(given) - set(RequestParameters().fields))
        if unknown:
            raise forms.ValidationError(f"The request log has no parameter {unknown[0][:100]}.")
        try:
            _filter_of(given)
        except InvalidParameters as error:
            raise forms.ValidationError(error_texts(error.detail)) from None
        return given

    def clean_expected(self) -> Any:
        """Returns an object or a list if the text is JSON of one, else the text; None if it is empty."""
        text: str = self.cleaned_data["expected"]
        if text.lstrip()[:1] in ("{", "["):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return text
        return text or None


@dataclass(frozen=True, slots=True)
class Outcome:
    table: Table
    sentence: str


def dry_run(visit: Visit, kind: str, form: KindForm, chosen: TryForm) -> Outcome | None:
    if not all([form.is_valid(), chosen.is_valid()]):
        return None
    try:
        definition = read_definition(kind, form.definition())
    except ValidationError as error:
        form.refuse(error)
        return None
    try:
        return _tried(visit, definition, form.cleaned_data["good_from"], chosen)
    except ApplicationError as error:
        chosen.add_error(None, error.message)
        return None


def can_be_tried(kind: str) -> bool:
    return kind != str(Pairwise.__struct_config__.tag)


def _tried(visit: Visit, definition: Definition, good_from: float, chosen: TryForm) -> Outcome | None:
    request_ids = chosen.cleaned_data["request_ids"] or _newest(visit, chosen)
    if not request_ids:
        chosen.add_error(None, "No chat completion of the range whose texts are stored matches.")
        return None
    tried = try_evaluator(
        project_id=visit.project.pk,
        definition=definition,
        request_ids=request_ids,
        actor=visit.actor,
        expected=chosen.cleaned_data["expected"],
    )
    found = dry_run_entry(tried, good_from=good_from, sees_content=visit.sees_content)
    return Outcome(_table(visit, found["results"]), _sentence(found))


def _newest(visit: Visit, chosen: TryForm) -> list[UUID]:
    period = visit.period
    bounds = {"start_date": period.start.isoformat(), "end_date": period.end.isoformat()}
    filters = _filter_of({**bounds, **chosen.cleaned_data["filter"]})
    limit = chosen.cleaned_data["newest"] or _NEWEST
    found = sample_requests(visit.project.pk, filters, SampleOrder.NEWEST, limit=limit)
    return [row.request_id for row in found]


def _filter_of(given: Mapping[str, Any]) -> RequestFilter:
    parameters = RequestParameters(data={"source": _CLIENTS, **given})
    parameters.is_valid(raise_exception=True)
    return parameters.to_filter()


def _sentence(found: EvaluatorDryRun) -> str:
    of_all = f"{found['good']} good of {found['scored']} scored"
    missing = len(found["results"]) - found["scored"]
    return f"{of_all}{f', {missing} without a score' if missing else ''}. Cost: {money(found['total_cost_usd'])}."


def _table(visit: Visit, results: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        caption="Scores of the dry run, of which none is kept",
        columns=[
            Column("request", "Request", lambda row: id_link(_link(visit, row), row["request_id"])),
            Column("score", "Score", _score),
            Column("reason", "Reason", _reason),
            Column("detail", "In words", _detail),
            Column("cost", "Cost", lambda row: money(row["cost_usd"]), is_numeric=True),
        ],
        rows=results,
        empty=Empty("No request was scored."),
    )


def _link(visit: Visit, row: Mapping[str, Any]) -> str:
    if row["reason"] == "request_not_found":
        return ""
    return visit.link_if_there(_REQUEST, visit.project.pk, row["request_id"])


def _score(row: Mapping[str, Any]) -> SafeString:
    if row["score"] is None:
        return status("none", "warn")
    return status(f"{row['score']:.3g}", "good" if row["is_good"] else "bad")


def _reason(row: Mapping[str, Any]) -> str:
    # Where there is no score, the reason is a code.
    reason: str = row["reason"] if row["score"] is not None else row["reason"].replace("_", " ")
    return reason or NONE


def _detail(row: Mapping[str, Any]) -> SafeString | str:
    return format_html('<span class="turn-text">{}</span>', row["detail"]) if row["detail"] else NONE


class NameForm(forms.Form):
    name = forms.CharField(max_length=EVALUATOR_NAME_CHARACTERS, label="Name")
    description = forms.CharField(
        required=False,
        max_length=EVALUATOR_DESCRIPTION_CHARACTERS,
        label="Description",
        widget=forms.Textarea(attrs={"rows": 2}),
    )


def chosen_requests(visit: Visit) -> TryForm:
    if visit.request.method == "POST":
        return TryForm(visit.request.POST.dict())
    return TryForm(initial={"request_ids": visit.request.GET.get("request_id", "")})


def editor_context(visit: Visit, kind: str, form: KindForm) -> dict[str, Any]:
    """Returns the template's context; its button makes the dry run."""
    chosen, outcome = chosen_requests(visit), None
    if visit.request.method == "POST" and visit.request.POST.get("action") == TRY and can_be_tried(kind):
        outcome = dry_run(visit, kind, form, chosen)
    return {**_shown(visit, kind, form), "chosen": chosen if can_be_tried(kind) else None, "outcome": outcome}


def _shown(visit: Visit, kind: str, form: KindForm) -> Mapping[str, Any]:
    return {
        "kind": kind,
        "kind_title": KIND_TITLES[kind],
        "form": form,
        "models": _models(visit) if kind in _ASKS_A_CHAT_MODEL else (),
        "period": visit.period,
    }


def _models(visit: Visit) -> list[str]:
    return [model["model"] for model in list_models(visit.project.pk, "")[:_MAX_MODELS]]
