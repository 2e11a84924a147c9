from __future__ import annotations

from typing import Any

from console.connect.forms import ApplicationKeyForm
from console.connect.models import UNANSWERED, usual_model
from console.connect.snippets import KEY_VARIABLE, Call, tabs_of
from console.connect.steps import waiting_steps
from core.models import ApiKey
from core.ui.pages import Visit
from gateway.selectors import project_settings
from integrations.providers.openai.adapter import RESPONSES_MODELS
from integrations.providers.openai.dialect import is_one_of


def root_of(visit: Visit) -> str:
    """Returns the gateway's address from the host and scheme of the browser's request."""
    return visit.request.build_absolute_uri("/api/gateway")


def tabs_box(visit: Visit, call: Call) -> dict[str, Any]:
    return {
        "tabs": tabs_of(call),
        "secret": call.secret,
        "key_variable": KEY_VARIABLE,
        "may_make_keys": bool(visit.link_if_there("api_keys")),
        "connect_address": visit.link("connect"),
        "project_name": visit.project.name,
        "ask_address": visit.request.build_absolute_uri(visit.link("api_keys")),
    }


def steps_box(
    visit: Visit,
    *,
    key: ApiKey | None = None,
    secret: str = "",
    model: str = "",
    form: ApplicationKeyForm | None = None,
) -> dict[str, Any]:
    """`secret` is shown this once; an empty `model` means one of the project's. The panel `steps` loads the steps."""
    chosen = model or usual_model(visit.project.pk, key)
    return {
        **tabs_box(visit, Call(root_of(visit), chosen or UNANSWERED, secret)),
        "model": chosen,
        "tools_need_setting": _tools_need_setting(visit, chosen),
        "given_model": model,
        "key": key,
        "form": form or ApplicationKeyForm(),
        "steps_address": visit.link("connect", panel="steps", key=key.pk if key is not None else ""),
    }


def _tools_need_setting(visit: Visit, model: str) -> bool:
    name = model.rpartition("/")[2]
    return is_one_of(name, RESPONSES_MODELS) and not project_settings(visit.project.pk).openai_responses_for_tools


def waiting_box(visit: Visit, *, key: ApiKey | None = None, secret: str = "", model: str = "") -> dict[str, Any]:
    return {**steps_box(visit, key=key, secret=secret, model=model), "steps": waiting_steps(visit, key)}
