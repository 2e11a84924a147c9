"""Admin pages of integrations. A key can be entered and is never shown; the list shows its last characters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from typing_extensions import override

from core.errors import ValidationError
from core.rights.asking import sees_every_project
from core.site.admin import RightsAdmin
from integrations.access.checked_deployments import checked_name
from integrations.access.completeness import SECRET_EXTRA
from integrations.access.credentials import is_usable, masked, masked_headers
from integrations.connection_tests.admin import MAX_AT_ONCE, report_tests, test_page
from integrations.models import ProviderIntegration
from integrations.pricing.admin import ModelPriceAdmin as ModelPriceAdmin
from integrations.registry import is_known
from integrations.services import Default, IntegrationChange, apply_change

if TYPE_CHECKING:
    # Django's ModelForm is generic in its type stubs only, not when the program runs.
    IntegrationModelForm = forms.ModelForm[ProviderIntegration]
else:
    IntegrationModelForm = forms.ModelForm


ADDITIONS = ("default_parameters", "forced_parameters", "forward_headers")


class IntegrationForm(IntegrationModelForm):
    """The admin's form of an integration. `apply_change` decides which values may be stored, as for the API; superusers
    alone may name any address."""

    is_trusted = False

    api_key = forms.CharField(
        required=False,
        strip=True,
        widget=forms.PasswordInput(render_value=False),
        help_text="Leave empty to keep the stored key. For Vertex AI an API key or a service account's JSON.",
    )
    access_key_id = forms.CharField(required=False, widget=forms.PasswordInput(render_value=False))
    secret_access_key = forms.CharField(required=False, widget=forms.PasswordInput(render_value=False))
    session_token = forms.CharField(required=False, widget=forms.PasswordInput(render_value=False))
    default_parameters = forms.JSONField(
        required=False, initial=dict, help_text='Where a request leaves them out: {"temperature": 0.2}.'
    )
    forced_parameters = forms.JSONField(
        required=False, initial=dict, help_text="Whatever a request says; null takes a parameter out."
    )
    extra_headers = forms.JSONField(
        required=False,
        initial=dict,
        help_text='Sent to the provider: {"x-team": "search"}. Stored encrypted; **** keeps the stored value.',
    )
    forward_headers = forms.JSONField(
        required=False, help_text="Names of the client's headers that are passed on. Empty: the provider's own list."
    )

    class Meta:
        model = ProviderIntegration
        fields = ["project", "provider", "name", "enabled", "base_url", "options", *ADDITIONS]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["extra_headers"] = masked_headers(self.instance)

    @override
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        provider = cleaned.get("provider") or self.instance.provider
        if self.errors or not is_known(provider):
            return cleaned
        self.instance.provider = provider
        options, forward = cleaned.get("options") or {}, cleaned.get("forward_headers")
        change = IntegrationChange(
            secret=cleaned.get("api_key") or None,
            base_url=cleaned.get("base_url", ""),
            options=options if isinstance(options, dict) else {"options": options},
            secret_extra={name: cleaned[name] for name in SECRET_EXTRA if cleaned.get(name)} or None,
            # An option that was removed in the form is removed from the row, since the form sends all options.
            all_options=True,
            default_parameters=_object(cleaned, "default_parameters"),
            forced_parameters=_object(cleaned, "forced_parameters"),
            extra_headers=_object(cleaned, "extra_headers"),
            forward_headers=Default.OF_PROVIDER if forward is None else forward,
        )
        try:
            cleaned["name"] = checked_name(cleaned.get("name") or self.instance.name, provider)
            apply_change(self.instance, change, trusted=self.is_trusted)
        except ValidationError as error:
            raise forms.ValidationError(error.message) from error
        # Django writes the form's cleaned values to the row, so they are replaced by those that `apply_change` has
        # checked.
        for name in ("base_url", "options", "default_parameters", "forced_parameters", "forward_headers"):
            cleaned[name] = getattr(self.instance, name)
        return cleaned


def _object(cleaned: Mapping[str, Any], name: str) -> Any:
    """Returns the JSON object of a field; an emptied field is an object without entries."""
    value = cleaned.get(name)
    return {} if value is None else value


_STORED_ROW_FIELDS = ("key", "usable", "last_test")


@admin.register(ProviderIntegration)
class ProviderIntegrationAdmin(RightsAdmin):
    form = IntegrationForm
    list_display = ["name", "provider", "project", "enabled", "key", "usable", "last_test", "base_url", "updated_at"]
    list_filter = ["provider", "enabled", "last_test_ok", "project"]
    list_select_related = ["project"]
    search_fields = ["name", "provider", "project__name"]
    fields = [
        "project",
        "provider",
        "name",
        "enabled",
        "key",
        "usable",
        "last_test",
        "api_key",
        *SECRET_EXTRA,
        "base_url",
        "options",
        *ADDITIONS,
        "extra_headers",
    ]
    actions = ["test_selected"]

    @override
    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        # Django makes a new form class for each request, so that setting attributes on it changes no other request's
        # form.
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.is_trusted = sees_every_project(request.user)
        return form

    @override
    def get_fields(self, request: HttpRequest, obj: ProviderIntegration | None = None) -> Any:
        return [name for name in self.fields if obj or name not in _STORED_ROW_FIELDS]

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: ProviderIntegration | None = None) -> list[str]:
        return [*_STORED_ROW_FIELDS, "project", "provider", "name"] if obj else []

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(partial(test_page, self))
        return [path("<int:integration_id>/test/", view, name="integrations_test"), *super().get_urls()]

    @admin.display(description="stored key")
    def key(self, row: ProviderIntegration) -> str:
        return masked(row) or "-"

    @admin.display(description="readable", boolean=True)
    def usable(self, row: ProviderIntegration) -> bool:
        """Returns True when today's encryption keys can read the stored credential."""
        return is_usable(row)

    @admin.display(description="last test", ordering="last_tested_at")
    def last_test(self, row: ProviderIntegration) -> str:
        if row.last_tested_at is None:
            return "-"
        return f"{row.last_test_reason}, {row.last_tested_at:%Y-%m-%d %H:%M} UTC"

    @admin.action(description="Test the selected integrations", permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ProviderIntegration]) -> None:
        rows = list(queryset.select_related("project")[: MAX_AT_ONCE + 1])
        if len(rows) > MAX_AT_ONCE:
            messages.error(request, f"Select at most {MAX_AT_ONCE} integrations.")
        else:
            report_tests(request, rows)
