"""The prompt editor: a new version of a prompt, or a new prompt with its first version.

It checks the text as the API's `prompts/check` does. If somebody saved a version meanwhile, the editor shows it and
keeps what was typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from console.prompts.forms import Variables, VersionForm, draft_of, initial_of, variable_rows
from console.prompts.messages import ACTION, CHOICES, MessageRow, changed, rows_of, rows_sent
from console.prompts.prompt import config_of, version_named
from core.errors import ApplicationError, ConflictError
from core.ui.pages import Page, Visit
from gateway.playground.catalog import list_models
from prompts.content.checks import Draft, DraftCheck, check_draft
from prompts.content.composition import Library
from prompts.content.version import VersionContent
from prompts.diff.contents import diff_contents
from prompts.models import PromptConfig, PromptVersion
from prompts.selectors import version_content
from prompts.serializers import check_body
from prompts.services import activate_version, add_version, create_config, update_config

MAX_MODELS = 60
_CHECK = "prompts/check.html"


class OutdatedEditError(ConflictError):
    def __init__(self) -> None:
        super().__init__("Somebody saved a version after you opened the editor: see below what it says.")


@dataclass(frozen=True, slots=True)
class Edit:
    """`config` is None for a new prompt."""

    config: PromptConfig | None
    form: VersionForm
    rows: Variables
    messages: list[MessageRow]

    @property
    def is_outdated(self) -> bool:
        """True if somebody saved a version after the editor was opened."""
        if self.config is None:
            return False
        return self.form.cleaned_data.get("base") != self.config.last_version_number


class PromptEditorPage(Page):
    route = "prompts/<uuid:config_id>/edit/"
    name = "prompt_editor"
    title = "Edit prompt"
    parent = "prompts"
    model = PromptConfig
    noun = "prompt"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        config = config_of(visit, route["config_id"])
        given = visit.request.GET.get("version", "")
        begun = version_named(config, given) or config.active_version
        fields = {"name": config.name, "description": config.description, "base": config.last_version_number}
        form = VersionForm(initial={**initial_of(begun), **fields})
        rows = variable_rows(begun.variables if begun else ())
        edit = Edit(config, form, rows, rows_of(begun.messages if begun else ())[1])
        return _shown(visit, edit, draft_of(form.initial, begun.variables if begun else (), edit.messages, config.pk))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        return _posted(self, visit, config_of(visit, route["config_id"]))


class NewPromptPage(Page):
    route = "prompts/new/"
    name = "prompt_new"
    title = "New prompt"
    parent = "prompts"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, Edit(None, VersionForm(initial={"base": 0}), variable_rows(), []), None)

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        return _posted(self, visit, None)


def _posted(page: Page, visit: Visit, config: PromptConfig | None) -> HttpResponseBase:
    given = visit.request.POST.copy()
    # Browsers end the lines of a text area with both characters.
    given["system_prompt"] = str(given.get("system_prompt", "")).replace("\r\n", "\n")
    action = str(given.get("action", ""))
    rows = rows_sent(given)
    moved = changed(rows, action) if action.startswith(ACTION) else rows
    edit = Edit(config, VersionForm(given), variable_rows(data=given), moved)
    is_valid = all([edit.form.is_valid(), edit.rows.is_valid()])
    draft = draft_of(given.dict(), edit.rows.declared, moved, config.pk if config else None)
    if action == "check" or action.startswith(ACTION):
        context = _shown(visit, edit, draft)
        if given.get("fragment"):
            return HttpResponse(render_to_string(_CHECK, context, visit.request))
        found = _with_found(edit, check_draft(draft, Library(visit.project.pk)))
        return page.render(visit, **{**context, "rows": found, "form": _unjudged(edit, given)})
    if is_valid and (saved := _saved(visit, edit)) is not None:
        return HttpResponseRedirect(saved)
    return page.render(visit, **_shown(visit, edit, draft))


def _unjudged(edit: Edit, given: Any) -> VersionForm:
    return VersionForm(initial=given.dict() | {"activate": bool(given.get("activate"))})


def _with_found(edit: Edit, checked: DraftCheck) -> Variables:
    found = [{"name": use.name} for use in checked.variables if not use.is_declared]
    return variable_rows([*edit.rows.declared, *found])


def _saved(visit: Visit, edit: Edit) -> str | None:
    content = edit.form.content(edit.rows.declared, edit.messages)
    if content is None:
        return None
    try:
        config, version = _store(visit, edit, content)
    except ApplicationError as error:
        edit.form.refuse(error)
        if edit.config is not None:
            # The transaction is rolled back: what the page shows is what is stored.
            edit.config.refresh_from_db()
        return None
    visit.note_change(config, f"Saved version {version.number}.")
    is_active = version.pk == config.active_version_id
    state = "It is active: gateways follow within a second." if is_active else "It is not active yet."
    messages.success(visit.request, f"Saved version {version.number} of {config.name}. {state}")
    if edit.form.data.get("action") == "try":
        tried = visit.link_if_there("experiment_form", a=config.active_version_id, b=None if is_active else version.pk)
        return tried or visit.link("prompt", config.pk, version=version.number)
    return visit.link("prompt", config.pk, version=version.number)


def _store(visit: Visit, edit: Edit, content: VersionContent) -> tuple[PromptConfig, PromptVersion]:
    actor, data = visit.actor, edit.form.cleaned_data
    project_id = visit.project.pk
    described = {"name": data["name"], "description": data["description"], "actor": actor}
    with transaction.atomic():
        _require_latest(edit)
        if edit.config is None:
            config = create_config(project_id=project_id, **described)
        elif (edit.config.name, edit.config.description) != (data["name"], data["description"]):
            config = update_config(project_id=project_id, config_id=edit.config.pk, **described)
        else:
            config = edit.config
        version = add_version(project_id=project_id, config_id=config.pk, content=content, actor=actor)
        if data["activate"]:
            activate_version(
                project_id=project_id,
                config_id=config.pk,
                version_id=version.pk,
                actor=actor,
                reason=data["reason"],
            )
    config.refresh_from_db()
    return config, version


def _require_latest(edit: Edit) -> None:
    """Locks the prompt, so that the second of two concurrent saves fails with OutdatedEditError."""
    if edit.config is None:
        return
    locked = PromptConfig.objects.select_for_update().get(pk=edit.config.pk)
    if locked.last_version_number != edit.form.cleaned_data.get("base"):
        raise OutdatedEditError


def _shown(visit: Visit, edit: Edit, draft: Draft | None) -> Mapping[str, Any]:
    config = edit.config
    active = config.active_version if config else None
    latest = _newer(edit)
    return {
        "title": f"Edit {config.name}" if config else "New prompt",
        "config": config,
        "form": edit.form,
        "rows": edit.rows,
        "next_number": (config.last_version_number if config else 0) + 1,
        "active": active,
        "messages_of_prompt": edit.messages,
        "message_roles": CHOICES,
        "check": check_body(check_draft(draft, Library(visit.project.pk))) if draft else None,
        "diff": _diff(active, draft),
        "newer": latest,
        "newer_diff": _diff(latest, draft),
        "models": [model["model"] for model in list_models(visit.project.pk, "")[:MAX_MODELS]],
        "prompt_address": visit.link("prompt", config.pk) if config else "",
        "may_try": bool(active and visit.link_if_there("experiment_form")),
        "is_rolled_out": bool(config and config.has_active_rollout),
    }


def _newer(edit: Edit) -> PromptVersion | None:
    if edit.config is None or not edit.form.is_bound or not hasattr(edit.form, "cleaned_data") or not edit.is_outdated:
        return None
    return PromptVersion.objects.filter(config=edit.config).order_by("-number").first()


def _diff(before: PromptVersion | None, draft: Draft | None) -> Mapping[str, Any] | None:
    after = VersionContent(draft.system_prompt, messages=draft.messages) if draft else VersionContent()
    if before is None or version_content(before).texts == after.texts:
        return None
    return {"sections": diff_contents(version_content(before), after).sections, "changes": []}
