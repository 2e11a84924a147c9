from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.audit.actors import actor_names
from core.roles import Right
from core.ui.formats import NONE, moment
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from prompts.errors import VersionNotFoundError
from prompts.labels import list_label_moves, list_labels, remove_label, set_label
from prompts.models import REASON_CHARACTERS, PromptConfig, PromptLabelMove

_MAX_LABELS, _MAX_MOVES = 100, 20


def labels_context(visit: Visit, config: PromptConfig) -> Mapping[str, Any]:
    labels = list(list_labels(visit.project.pk, config.pk)[:_MAX_LABELS])
    return {
        "labels": Table(
            caption="Labels by name",
            columns=[
                Column("name", "Label", lambda row: row.name),
                Column("version", "Version", lambda row: f"Version {row.version.number}"),
                Column("protected", "Moved by", lambda row: "administrators" if row.is_protected else "editors"),
                Column("moved", "Changed", lambda row: moment(row.updated_at)),
            ],
            rows=labels,
            empty=Empty("This prompt has no label yet."),
            key=lambda row: visit.link("prompt", config.pk, version=row.version.number),
        ),
        "label_moves": _moves_table(visit, config),
        "label_names": [label.name for label in labels],
        "may_administer": visit.may(Right.ADMINISTER),
    }


def labels_by_version(visit: Visit, config: PromptConfig) -> Mapping[int, str]:
    found: dict[int, list[str]] = {}
    for label in list_labels(visit.project.pk, config.pk)[:_MAX_LABELS]:
        found.setdefault(label.version.number, []).append(label.name)
    return {version: ", ".join(names) for version, names in found.items()}


def change_label(visit: Visit, config: PromptConfig, actor: str) -> str:
    """Applies the form's change and returns a message. Raises ApplicationError."""
    given = visit.request.POST
    named: dict[str, Any] = {
        "project_id": config.project_id,
        "config_id": config.pk,
        "name": given.get("label", "").strip(),
        "actor": actor,
        "is_administrator": visit.may(Right.ADMINISTER),
        "reason": given.get("reason", "")[:REASON_CHARACTERS],
    }
    if given.get("action") == "remove_label":
        remove_label(**named)
        return f"Removed the label {named['name']}."
    number = given.get("version", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise VersionNotFoundError
    protection = given.get("protected", "")
    set_label(**named, number=int(number), is_protected=protection == "yes" if protection else None)
    return f"Moved the label {named['name']} to version {number}."


def _moves_table(visit: Visit, config: PromptConfig) -> Table:
    rows = list(list_label_moves(visit.project.pk, config.pk)[:_MAX_MOVES])
    names = actor_names(row.actor for row in rows)

    def move(row: PromptLabelMove) -> str:
        before = f"{row.from_version.number} → " if row.from_version else ""
        return f"{before}{row.to_version.number if row.to_version else 'removed'}"

    return Table(
        caption="Moves of labels, the latest first",
        columns=[
            Column("at", "When", lambda row: moment(row.created_at)),
            Column("label", "Label", lambda row: row.label),
            Column("move", "Version", move),
            Column("by", "By", lambda row: names[row.actor]),
            Column("reason", "Why", lambda row: row.reason or NONE),
        ],
        rows=rows,
        empty=Empty("No label was moved yet."),
    )
