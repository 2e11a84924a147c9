from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gateway.configuration.plan import Action, Change, ProjectPlan
from gateway.configuration.problems import printable
from gateway.configuration.secrets import Secret
from gateway.configuration.sections.base import Added

_SIGNS = {Action.CREATE: "+", Action.CHANGE: "~", Action.DELETE: "-"}
_MAX_CHARACTERS = 100


def lines_of(plans: Sequence[ProjectPlan], *, can_prune: bool) -> Iterator[str]:
    for plan in plans:
        if plan.is_any:
            yield f"project {plan.name}{' (new)' if plan.is_new else ''}"
        for change in plan.changes:
            yield from map(printable, _change(change))
    yield summary(plans)
    unnamed = sum(plan.unnamed for plan in plans)
    if unnamed and can_prune:
        yield f"{unnamed:,} that the file does not name stay; --prune deletes them."


def summary(plans: Sequence[ProjectPlan]) -> str:
    changes = [change.action for plan in plans for change in plan.changes]
    new = sum(plan.is_new for plan in plans)
    counts = {action: changes.count(action) + (new if action is Action.CREATE else 0) for action in Action}
    if not any(counts.values()):
        return "No changes: all is as the file says."
    return f"{', '.join(f'{count:,} to {action}' for action, count in counts.items())}."


def _change(change: Change) -> Iterator[str]:
    name = f"{change.section}.{change.name}" if change.name else change.section
    yield f"  {_SIGNS[change.action]} {name}"
    for field, (before, after) in change.differences.items():
        if change.action is Action.CREATE or isinstance(after, Added):
            yield f"      {field}: {_shown(after)}"
        else:
            yield f"      {field}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    if isinstance(value, Secret | Added):
        return str(value)
    if value is None:
        return "none"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}: {_shown(inner)}" for name, inner in value.items())
        text = f"{{{text}}}"
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(map(_shown, value))}]"
    elif isinstance(value, str):
        text = repr(str(value))
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
