from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django import forms
from django.forms import BaseFormSet, formset_factory

from console.prompts.messages import MessageRow, rows_of, written
from core.errors import ApplicationError, ValidationError
from prompts.content.checks import Draft
from prompts.content.templating import MAX_VARIABLES, TYPES
from prompts.content.version import MAX_TEMPERATURE, MAX_TOKENS, VersionContent, check_content
from prompts.errors import InvalidVersionError
from prompts.models import (
    COMMIT_MESSAGE_CHARACTERS,
    DESCRIPTION_CHARACTERS,
    MODEL_CHARACTERS,
    NAME_CHARACTERS,
    REASON_CHARACTERS,
    PromptVersion,
)
from prompts.services import named

if TYPE_CHECKING:
    AnyVariables = BaseFormSet["VariableForm"]
else:
    AnyVariables = BaseFormSet

EMPTY_ROWS = 3
_JSON_ROWS = 6


class VersionForm(forms.Form):
    name = forms.CharField(max_length=NAME_CHARACTERS, help_text="Requests name the prompt by it.")
    description = forms.CharField(required=False, max_length=DESCRIPTION_CHARACTERS)
    system_prompt = forms.CharField(
        required=False,
        strip=False,
        label="System prompt",
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "true"}),
        help_text="{{ name }} is a variable. The text becomes the system message of requests that have none.",
    )
    model = forms.CharField(
        required=False,
        max_length=MODEL_CHARACTERS,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
        help_text="For requests that say auto. Empty: the request's.",
    )
    temperature = forms.FloatField(
        required=False, min_value=0, max_value=MAX_TEMPERATURE, help_text="Where the request says none."
    )
    max_tokens = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_TOKENS, label="Max. tokens", help_text="Where the request says none."
    )
    tools = forms.CharField(
        required=False,
        strip=False,
        label="Tools (JSON)",
        widget=forms.Textarea(attrs={"rows": _JSON_ROWS, "spellcheck": "false"}),
        help_text="A list of function tools. Where the request has none.",
    )
    response_format = forms.CharField(
        required=False,
        strip=False,
        label="Contract of the answer (JSON)",
        widget=forms.Textarea(attrs={"rows": _JSON_ROWS, "spellcheck": "false"}),
        help_text='A response_format, such as {"type": "json_schema", "json_schema": {"name": …, "schema": …}}.',
    )
    commit_message = forms.CharField(
        required=False, max_length=COMMIT_MESSAGE_CHARACTERS, label="What changed", help_text="Kept with the version."
    )
    activate = forms.BooleanField(required=False, label="Activate it at once")
    reason = forms.CharField(
        required=False, max_length=REASON_CHARACTERS, label="Why it is activated", help_text="Kept in the history."
    )
    # The number of the latest version when the editor was opened.
    base = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_name(self) -> str:
        try:
            return named(self.cleaned_data["name"], before=str(self.initial.get("name", "")))
        except ValidationError as error:
            raise forms.ValidationError(error.message.partition(": ")[2] or error.message) from error

    def content(self, variables: Sequence[Mapping[str, Any]], rows: Sequence[MessageRow] = ()) -> VersionContent | None:
        """Returns the content with the messages of `rows`; None with the faults as errors of the form."""
        data = self.cleaned_data
        parsed: dict[str, Any] = {}
        for name in ("tools", "response_format"):
            try:
                parsed[name] = json.loads(data[name]) if data[name].strip() else None
            except (ValueError, RecursionError) as error:
                self.add_error(name, f"Not JSON: {error}")
        if not isinstance(parsed.get("tools"), list | None):
            self.add_error("tools", "Must be a list.")
        if self.errors:
            return None
        system_prompt, messages = written(data["system_prompt"], rows)
        content = VersionContent(
            system_prompt=system_prompt,
            messages=messages,
            model=data["model"],
            temperature=data["temperature"],
            max_tokens=data["max_tokens"],
            variables=[dict(variable) for variable in variables],
            tools=parsed["tools"] or [],
            response_format=parsed["response_format"],
            commit_message=data["commit_message"],
        )
        return content if self._accepts(content) else None

    def refuse(self, error: ApplicationError) -> None:
        details = error.details or {}
        for path, found in details.items():
            name = path.partition(".")[0]
            field = name if name in self.fields else None
            for message in found:
                self.add_error(field, message if field == path else f"{path}: {message}")
        if not details:
            self.add_error(None, error.message)

    def _accepts(self, content: VersionContent) -> bool:
        try:
            check_content(content)
        except InvalidVersionError as error:
            self.refuse(error)
        except UnicodeEncodeError:
            self.add_error("system_prompt", "Holds text that is not well-formed.")
        return not self.errors


class VariableForm(forms.Form):
    name = forms.CharField(required=False, max_length=200, label="Name")
    type = forms.ChoiceField(choices=[(name, name) for name in TYPES], required=False, label="Type")
    required = forms.BooleanField(required=False, label="Required")


class Variables(AnyVariables):
    @property
    def declared(self) -> list[dict[str, Any]]:
        rows = [form.cleaned_data for form in self.forms if hasattr(form, "cleaned_data")]
        return [
            {"name": row["name"], "type": row.get("type") or "string", "required": bool(row.get("required"))}
            for row in rows
            if row.get("name")
        ]


_Variables: type[Variables] = cast(
    "type[Variables]", formset_factory(VariableForm, formset=Variables, extra=0, max_num=MAX_VARIABLES)
)


def variable_rows(variables: Iterable[Mapping[str, Any]] = (), data: Any = None) -> Variables:
    if data is not None:
        return _Variables(data, prefix="variables")
    initial = [{"type": "string", **variable} for variable in variables]
    return _Variables(initial=[*initial, *({"type": "string"} for _ in range(EMPTY_ROWS))], prefix="variables")


def initial_of(version: PromptVersion | None) -> dict[str, Any]:
    if version is None:
        return {}
    return {
        "system_prompt": version.system_prompt or rows_of(version.messages)[0],
        "model": version.model,
        "temperature": version.temperature,
        "max_tokens": version.max_tokens,
        "tools": _pretty(version.tools),
        "response_format": _pretty(version.response_format),
    }


def draft_of(
    data: Mapping[str, Any], variables: Sequence[Mapping[str, Any]], rows: Sequence[MessageRow], config_id: UUID | None
) -> Draft:
    system_prompt, messages = written(str(data.get("system_prompt") or "").replace("\r\n", "\n"), rows)
    return Draft(
        system_prompt=system_prompt,
        messages=messages,
        config_id=config_id,
        variables=[dict(variable) for variable in variables],
        tools=str(data.get("tools") or ""),
        response_format=str(data.get("response_format") or ""),
    )


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
