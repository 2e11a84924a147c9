from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analytics.models import Score
from analytics.request_log.record import RequestEntry
from core.ui.formats import NONE, duration, moment, money, number
from core.ui.marks import id_link, mark
from core.ui.pages import Visit
from core.ui.tables import Column, page_link
from integrations.registry import provider_title

_PREVIEW_CHARACTERS = 120
_MAX_SCORES = 3

Cell = SafeString | str


def columns_of(
    visit: Visit, scores: Mapping[str, Sequence[Score]], keys: Mapping[int, str] = MappingProxyType({})
) -> Sequence[Column]:
    """`scores` are by request id; `keys` are the names of API keys by key id."""
    texts = [Column("completion_preview", "Answer text", lambda row: _cut(row["completion_preview"]), is_default=False)]
    return [*_one_line(visit), *_further(visit, scores, keys), *(texts if visit.sees_content else [])]


def _one_line(visit: Visit) -> Sequence[Column]:
    return [
        Column("time", "Time", lambda row: moment(row["created_at"]), sort="created_at"),
        Column("outcome", "Outcome", lambda row: mark(row["outcome"])),
        Column("prompt_preview", "Input" if visit.sees_content else "Reason", text_cell),
        Column("model", "Model", lambda row: row["model"] or row["requested_model"] or NONE),
        Column("user", "User", lambda row: _filtered(visit, "user_id", row["user_id"])),
        Column("tokens", "Tokens", lambda row: number(row["total_tokens"]), is_numeric=True),
        Column("cost", "Cost", cost_cell, sort="cost_usd", is_numeric=True),
        Column("latency", "Took", lambda row: duration(row["latency_ms"]), sort="latency_ms", is_numeric=True),
    ]


def _further(visit: Visit, scores: Mapping[str, Sequence[Score]], keys: Mapping[int, str]) -> Sequence[Column]:
    return [
        Column(
            "ttft",
            "First token",
            lambda row: duration(row["ttft_ms"]),
            sort="ttft_ms",
            is_numeric=True,
            is_default=False,
        ),
        Column("session", "Session", partial(_session, visit), is_default=False),
        Column("provider", "Provider", lambda row: provider_title(row["provider"]) or NONE, is_default=False),
        Column("scores", "Scores", lambda row: _scores(scores.get(str(row["request_id"]), ())), is_default=False),
        Column("operation", "Operation", lambda row: row["operation"], is_default=False),
        Column("source", "Source", lambda row: row["source"], is_default=False),
        Column("status_code", "HTTP status", lambda row: str(row["status_code"]), is_numeric=True, is_default=False),
        Column("requested_model", "Model asked for", lambda row: row["requested_model"], is_default=False),
        Column("finish_reason", "Finish reason", lambda row: row["finish_reason"] or NONE, is_default=False),
        Column("attempts", "Attempts", lambda row: number(len(row["attempts"])), is_numeric=True, is_default=False),
        Column("cache", "Cache", lambda row: row["cache"], is_default=False),
        Column("api_key", "API key", partial(_key, visit, keys), is_default=False),
        Column("prompt", "Prompt", partial(_prompt, visit), is_default=False),
        Column("rollout", "Rollout", partial(_rollout, visit), is_default=False),
        Column("request", "Request", partial(_request, visit), is_default=False),
    ]


def _filtered(visit: Visit, name: str, value: str, label: str = "") -> Cell:
    if not value:
        return NONE
    href = page_link(visit.request.GET, **{name: value, "cursor": "", "peek": ""})
    return format_html('<a data-id="{}" href="{}">{}</a>', value, href, _cut(label or value, 24))


def _session(visit: Visit, row: RequestEntry) -> Cell:
    session_id = row["session_id"]
    if not session_id:
        return NONE
    page = visit.link_if_there("session", visit.project.pk, session_id)
    return id_link(page or page_link(visit.request.GET, session_id=session_id, cursor="", peek=""), session_id)


def _key(visit: Visit, keys: Mapping[int, str], row: RequestEntry) -> Cell:
    number_of = row["api_key_id"]
    if not number_of:
        return NONE
    return _filtered(visit, "api_key_id", str(number_of), keys.get(number_of, f"deleted key {number_of}"))


def text_cell(row: RequestEntry) -> Cell:
    """Returns why the request failed, else how its input begins. A reader without content sees only the error code."""
    error = row["error"]
    if error is None:
        return _cut(_question(row["prompt_preview"] or ""))
    message = _cut(" ".join((error["message"] or "").split()))
    return format_html('<b class="reason">{}</b> {}', error["code"] or error["type"], message)


def _question(preview: str) -> str:
    """Starts at the first user message, since system prompts are the same in each row."""
    _, found, rest = preview.partition("user: ")
    return " ".join((rest if found else preview).split())


def cost_cell(row: RequestEntry) -> str:
    """A request that used no tokens at any provider cost nothing, whatever the price."""
    if row["cost_usd"] is None and not row["total_tokens"] and row["outcome"] != "success":
        return money(0)
    return money(row["cost_usd"])


def _prompt(visit: Visit, row: RequestEntry) -> Cell:
    config_id = row["prompt_config_id"]
    if config_id is None:
        return NONE
    filtered = page_link(visit.request.GET, prompt_config_id=str(config_id), cursor="")
    page = visit.link_if_there("prompt", config_id) or filtered
    return format_html("{} version {}", id_link(page, config_id), row["prompt_version"])


def _rollout(visit: Visit, row: RequestEntry) -> Cell:
    rollout_id = row["rollout_id"]
    if rollout_id is None:
        return NONE
    page = visit.link_if_there("rollouts_rollout_change", rollout_id)
    return format_html("{} {}", id_link(page, rollout_id), row["variant"] or "")


def _request(visit: Visit, row: RequestEntry) -> Cell:
    return id_link(visit.link("analytics_requests_detail", visit.project.pk, row["request_id"]), row["request_id"])


def _scores(scores: Sequence[Score]) -> Cell:
    if not scores:
        return NONE
    named = ((score.score_name, score.score_label or f"{score.score_value:g}") for score in scores[:_MAX_SCORES])
    shown = format_html_join(", ", "{} {}", named)
    more = len(scores) - _MAX_SCORES
    return format_html("{} and {} more", shown, more) if more > 0 else shown


def _cut(text: Any, characters: int = _PREVIEW_CHARACTERS) -> str:
    shown = str(text or "")
    return shown if len(shown) <= characters else f"{shown[:characters]}…"
