"""The admin's form of the settings, with guardrails as fields instead of a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from typing_extensions import override

from gateway.models import MAX_PROMPT_TOKENS, GatewaySettings, validate_names
from gateway.project_settings.guardrails import TrustMode
from gateway.services import unknown_provider, whole_guardrails

if TYPE_CHECKING:
    # The class is generic in the type stubs only.
    SettingsModelForm = forms.ModelForm[GatewaySettings]
else:
    SettingsModelForm = forms.ModelForm

PREFIX = "guardrails_"


class LinesField(forms.CharField):
    """A list of different texts, one per line."""

    widget = forms.Textarea(attrs={"rows": 3})

    @override
    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    @override
    def clean(self, value: Any) -> list[str]:
        lines = [line.strip() for line in super().clean(value).splitlines()]
        names = [line for line in lines if line]
        validate_names(names)
        return names


def _lines(help_text: str) -> LinesField:
    return LinesField(required=False, help_text=f"{help_text} One a line.")


def _switch(help_text: str) -> forms.BooleanField:
    return forms.BooleanField(required=False, help_text=help_text)


class GatewaySettingsForm(SettingsModelForm):
    guardrails_trust_mode = forms.ChoiceField(
        required=False,
        choices=[(mode.value, mode.value) for mode in TrustMode],
        help_text="Whether guardrails are idle, only record what they find, or act on it.",
    )
    guardrails_blocked_input_topics = _lines("Phrases that a request may not hold.")
    guardrails_blocked_output_topics = _lines("Phrases that an answer may not hold.")
    guardrails_max_prompt_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_PROMPT_TOKENS,
        help_text="The longest prompt, in estimated tokens; empty for any.",
    )
    guardrails_pii_block_on_detect = _switch("Refuses requests that hold personal data.")
    guardrails_prompt_injection_detection = _switch("Refuses requests that try to take the model over.")
    guardrails_spotlighting_enabled = _switch("Marks what tools and documents say as data.")
    guardrails_document_delimiters = _lines(
        "The words that a document in a message begins and ends with, a blank between."
    )
    guardrails_mask_output_pii = _switch("Replaces personal data in answers by its kind.")
    guardrails_min_quality_score = forms.FloatField(
        required=False,
        min_value=0,
        max_value=100,
        help_text="What the judge model has to give an answer at least; empty for any answer.",
    )
    guardrails_blocked_tools = _lines("Tools that may be neither offered nor called.")
    guardrails_block_exfiltration_urls = _switch(
        "Takes links out of answers that carry the conversation to somewhere else."
    )

    class Meta:
        model = GatewaySettings
        exclude = ["guardrails"]

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        for name, value in whole_guardrails(self.instance.guardrails).items():
            self.initial.setdefault(PREFIX + name, value)

    def clean_fallback_order(self) -> Any:
        names, project = self.cleaned_data["fallback_order"] or [], self.cleaned_data.get("project")
        project_id = project.pk if project is not None else self.instance.project_id
        if project_id is None or not isinstance(names, list):
            return names
        named = [name for name in names if isinstance(name, str)]
        if problem := unknown_provider(project_id, named, self.initial.get("fallback_order") or ()):
            raise forms.ValidationError(problem)
        return names

    @override
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        self.instance.guardrails = {
            # An empty choice stands for the default.
            name: cleaned.get(PREFIX + name) or default if name == "trust_mode" else cleaned.get(PREFIX + name)
            for name, default in whole_guardrails({}).items()
        }
        return cleaned


GUARDRAIL_FIELDS = [PREFIX + name for name in whole_guardrails({})]
