from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.connect.box import root_of, tabs_box
from console.connect.models import UNANSWERED, problem_with, usual_model
from console.connect.snippets import Call
from core.ui.pages import Visit
from gateway.protocol.wire import AUTO
from prompts.labels import list_labels
from prompts.models import LATEST, PromptConfig, PromptVersion

_ACTIVE = ""
_MAX_LABELS = 100
_SAMPLES: Mapping[str, Any] = {"number": 1, "boolean": True, "array": [], "object": {}}


def use_context(
    visit: Visit, config: PromptConfig, shown: PromptVersion | None, versions: Sequence[PromptVersion]
) -> dict[str, Any]:
    active = config.active_version
    if shown is None or active is None:
        return {}
    labels = list_labels(visit.project.pk, config.pk)[:_MAX_LABELS]
    offered = {_ACTIVE: active, **{label.name: label.version for label in labels}, LATEST: versions[0]}
    if shown.pk != active.pk:
        offered[str(shown.number)] = shown
    given = visit.request.GET.get("use")
    chosen = given if given in offered else (_ACTIVE if shown.pk == active.pk else str(shown.number))
    version = offered[chosen]
    call = Call(
        root_of(visit),
        _model(visit, version),
        prompt=f"{config.name}@{chosen}" if chosen else config.name,
        variables={variable["name"]: _sample(variable) for variable in version.variables},
    )
    return {
        "box": tabs_box(visit, call),
        "use_choices": [(name, _label(name, found)) for name, found in offered.items()],
        "use_chosen": chosen,
        "use_problem": f"There is no label or version {given} here." if given and given not in offered else "",
    }


def _model(visit: Visit, version: PromptVersion) -> str:
    if version.model and not problem_with(visit.project.pk, version.model):
        return AUTO
    return usual_model(visit.project.pk) or UNANSWERED


def _sample(variable: Mapping[str, Any]) -> Any:
    return _SAMPLES.get(variable.get("type", ""), str(variable["name"]).replace("_", " "))


def _label(name: str, version: PromptVersion) -> str:
    if name == _ACTIVE:
        return f"what is active (version {version.number} now)"
    return f"version {name}" if name.isdecimal() else f"{name} (version {version.number} now)"
