"""The admin's pages of a prompt config besides its form: two versions side by side, activate, undo.

Pages that change something ask on GET, act on POST, and leave a row in the config's history and in the admin's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from core.errors import ApplicationError
from core.site.admin import RightsAdmin
from prompts.diff.contents import diff_contents
from prompts.models import REASON_CHARACTERS, PromptConfig, PromptVersion
from prompts.selectors import version_content
from prompts.services import activate_version, undo_activation

if TYPE_CHECKING:
    VersionChoice = forms.ModelChoiceField[PromptVersion]
else:
    VersionChoice = forms.ModelChoiceField


class ReasonForm(forms.Form):
    reason = forms.CharField(required=False, max_length=REASON_CHARACTERS, help_text="Kept in the history.")


class DiffForm(forms.Form):
    """A form that chooses two versions of one config."""

    def __init__(self, config: PromptConfig, data: Any) -> None:
        versions = PromptVersion.objects.filter(config=config).order_by("-number")
        super().__init__(data)
        self.fields["before"] = VersionChoice(versions, label="From", initial=config.active_version_id)
        self.fields["after"] = VersionChoice(versions, label="To", initial=versions.first())


def diff_page(owner: RightsAdmin, request: HttpRequest, config_id: UUID) -> HttpResponse:
    """Shows two versions side by side: `?before=` and `?after=` are their ids; without them a form to choose."""
    config = _config(owner, request, config_id)
    if not owner.has_view_permission(request, config):
        raise PermissionDenied
    form = DiffForm(config, request.GET or None)
    context: dict[str, Any] = {"title": f"Versions of {config} side by side", "config": config, "form": form}
    if form.is_valid():
        before, after = form.cleaned_data["before"], form.cleaned_data["after"]
        diff = diff_contents(version_content(before), version_content(after))
        changes = [
            (change.kind, change.name, pretty(change.before), pretty(change.after))
            for change in (*diff.parameters, *diff.variables, *diff.tools)
        ]
        context |= {"before": before, "after": after, "rows": diff.rows, "changes": changes}
    return _render(owner, request, "diff", context)


def activate_page(owner: RightsAdmin, request: HttpRequest, config_id: UUID, version_id: UUID) -> HttpResponse:
    config = _changeable(owner, request, config_id)
    version = PromptVersion.objects.filter(config=config, pk=version_id).first()
    if version is None:
        raise Http404("There is no such version.")

    def activate(reason: str) -> str:
        activate_version(
            project_id=config.project_id,
            config_id=config.pk,
            version_id=version.pk,
            actor=actor_of(request),
            reason=reason,
        )
        return f"Activated {version}."

    question = f"Serve {version} of {config} to every request from now on?"
    return _confirmation(owner, request, config, question, activate)


def undo_page(owner: RightsAdmin, request: HttpRequest, config_id: UUID) -> HttpResponse:
    config = _changeable(owner, request, config_id)

    def undo(reason: str) -> str:
        made = undo_activation(
            project_id=config.project_id, config_id=config.pk, actor=actor_of(request), reason=reason
        )
        return f"Went back to {made.to_version}."

    return _confirmation(owner, request, config, f"Take back the last activation of {config}?", undo)


def actor_of(request: HttpRequest) -> str:
    """Returns the actor's name as the management API writes it for a staff session."""
    return f"user:{request.user.get_username()}"


def pretty(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)


def _confirmation(
    owner: RightsAdmin, request: HttpRequest, config: PromptConfig, question: str, act: Callable[[str], str]
) -> HttpResponse:
    """Shows the confirmation page, or its result after POST; `act` takes the reason and returns what it did."""
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _render(
            owner, request, "confirm", {"title": question, "config": config, "form": form, "question": question}
        )
    try:
        done = act(form.cleaned_data["reason"])
    except ApplicationError as error:
        messages.error(request, error.message)
    else:
        owner.log_change(request, config, done)
        messages.success(request, f"{done} Gateways follow within a second.")
    return HttpResponseRedirect(reverse("admin:prompts_promptconfig_change", args=[config.pk]))


def _config(owner: RightsAdmin, request: HttpRequest, config_id: UUID) -> PromptConfig:
    config: PromptConfig | None = (
        owner.get_queryset(request).select_related("active_version").filter(pk=config_id).first()
    )
    if config is None:
        raise Http404("There is no such prompt config.")
    return config


def _changeable(owner: RightsAdmin, request: HttpRequest, config_id: UUID) -> PromptConfig:
    config = _config(owner, request, config_id)
    if not owner.has_change_permission(request, config):
        raise PermissionDenied
    return config


def _render(owner: RightsAdmin, request: HttpRequest, name: str, context: dict[str, Any]) -> TemplateResponse:
    everything = {**owner.admin_site.each_context(request), "opts": owner.model._meta, **context}
    return TemplateResponse(request, f"admin/prompts/{name}.html", everything)
