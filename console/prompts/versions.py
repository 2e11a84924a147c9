from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from console.prompts.labels import labels_by_version
from core.audit.actors import actor_names
from core.ui.formats import NONE, day, moment
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from prompts.selectors import list_activations
from rollouts.evaluation.words import first_sentence
from rollouts.models import Rollout
from rollouts.selectors import current_stage, latest_rollbacks, latest_rollouts

MAX_ACTIVATIONS = 20


def versions_table(visit: Visit, config: PromptConfig, versions: Sequence[PromptVersion]) -> Table:
    active, labels = config.active_version, labels_by_version(visit, config)
    rollouts, rollbacks = latest_rollouts(config), latest_rollbacks(config)
    names = actor_names(version.created_by for version in versions)

    def state(version: PromptVersion) -> Any:
        marks = [status("active")] if active and version.pk == active.pk else []
        if rollout := rollouts.get(version.pk):
            marks.append(_rollout_mark(visit, rollout))
        if rollback := rollbacks.get(version.pk):
            at = visit.linked(day(rollback.at), "rollouts_rollout_change", rollback.rollout_id)
            marks.append(format_html("{} {}: {}", status("rolled_back"), at, first_sentence(rollback.reason)))
        return format_html_join(mark_safe("<br>"), "{}", ((mark,) for mark in marks)) or NONE

    def actions(version: PromptVersion) -> Any:
        if active is None or version.pk == active.pk:
            return NONE
        href = visit.link("prompt", config.pk, version=version.number, against=active.number)
        return format_html(
            '<a href="{}">Compare<span class="sr"> version {}</span> with active</a>', href, version.number
        )

    return Table(
        caption="Versions, the newest first",
        columns=[
            Column("number", "Version", lambda row: f"Version {row.number}"),
            Column("state", "State", state),
            Column("labels", "Labels", lambda row: labels.get(row.number, NONE)),
            Column("message", "What changed", lambda row: row.commit_message or NONE),
            Column("model", "Model", lambda row: row.model or "the request's", gives_way=True),
            Column("by", "By", lambda row: names[row.created_by] or NONE, gives_way=True),
            Column("created", "Made", lambda row: moment(row.created_at)),
            Column("compare", "Differences", actions),
        ],
        rows=versions,
        empty=Empty("This prompt has no version yet.", visit.link_if_there("prompt_editor", config.pk), "Write it"),
        key=lambda row: visit.link("prompt", config.pk, version=row.number),
    )


def _rollout_mark(visit: Visit, rollout: Rollout) -> SafeString:
    stage, at = current_stage(rollout), rollout.ended_at or rollout.started_at or rollout.created_at
    share = f" at {stage.weight} %" if stage and not rollout.ended_at else ""
    words = format_html("{}{}", day(at), share)
    return format_html("{} {}", status(rollout.status), visit.linked(words, "rollouts_rollout_change", rollout.pk))


def activations_table(visit: Visit, config: PromptConfig) -> Table:
    rows = list(list_activations(visit.project.pk, config.pk)[:MAX_ACTIVATIONS])
    names = actor_names(row.actor for row in rows)

    def move(row: PromptActivation) -> str:
        before = f"{row.from_version.number} → " if row.from_version else ""
        return f"{before}{row.to_version.number}"

    return Table(
        caption="Activations, the latest first",
        columns=[
            Column("at", "When", lambda row: moment(row.created_at)),
            Column("move", "Version", move),
            Column("kind", "How", lambda row: row.get_kind_display().lower()),
            Column("by", "By", lambda row: names[row.actor]),
            Column("reason", "Why", lambda row: row.reason or NONE),
        ],
        rows=rows,
        empty=Empty("Nothing was activated yet."),
    )
