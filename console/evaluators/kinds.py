from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from analytics.evaluators.definitions import MAX_JUDGE_TOKENS
from analytics.models.evaluators import DEFAULT_GOOD_FROM
from console.evaluators.rubric import Rubric
from core.errors import ApplicationError
from gateway.judging.form import MAX_TOKENS, MAX_TOKENS_OF_THINKERS

KIND_TITLES: Mapping[str, str] = {
    "json_schema": "Keeps a JSON schema",
    "contains": "Has a text in it",
    "regex": "Matches a pattern",
    "equals": "Is the expected answer",
    "numeric_within": "Ends in the expected number",
    "tool_call": "Calls a tool",
    "length": "Is neither too short nor too long",
    "language": "Is in a language",
    "refusal": "Refuses nothing",
    "similarity": "Is like the expected answer",
    "judge": "Gets good grades of a judge",
    "pairwise": "Is better than another answer",
    "user_feedback": "Is not rated bad by users",
}

_MODELS: dict[str, Any] = {"list": "models", "autocomplete": "off"}


class KindForm(forms.Form):
    """A field left empty is omitted and gets its default. `rubric` has the criteria of a judge."""

    rubric: Rubric | None = None
    # The name of a tool and the expected refusal would meet the evaluator's name and the expected answer.
    prefix = "definition"

    def __init__(self, data: Mapping[str, Any] | None = None, definition: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial=self.initial_of(definition or {}))
        self.fields["good_from"] = forms.FloatField(
            min_value=0,
            max_value=1,
            initial=DEFAULT_GOOD_FROM,
            label="A good answer scores at least",
            help_text="From 0, the worst, to 1, the best.",
            widget=forms.NumberInput(attrs={"step": "any"}),
        )

    def initial_of(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in definition.items() if value is not None}

    def definition(self) -> dict[str, Any]:
        given = {name: value for name, value in self.cleaned_data.items() if name != "good_from"}
        return {name: value for name, value in given.items() if value not in ("", None)}

    def refuse(self, error: ApplicationError) -> None:
        """Shows an error of the API at the field that it names."""
        field = next(iter(error.details or {}), "")
        problem = error.message.removeprefix(f"{field}: ")
        name, _, place = field.removeprefix("definition.").partition(".")
        if self.rubric is not None and name == "criteria":
            self.rubric.refuse(place, problem)
        elif name in self.fields:
            self.add_error(name, f"{place}: {problem}" if place else problem)
        else:
            self.add_error(None, problem)


class JsonSchemaForm(KindForm):
    schema = forms.JSONField(
        required=False,
        label="Schema",
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
        help_text="A JSON schema. Empty: the one of the request's response_format.",
    )


class ContainsForm(KindForm):
    value = forms.CharField(
        required=False, strip=False, max_length=10_000, label="Text", help_text="Empty: the expected answer."
    )
    ignore_case = forms.BooleanField(required=False, initial=True, label="Capitals and small letters are the same")
    negated = forms.BooleanField(required=False, label="A good answer does not have it")


class RegexForm(KindForm):
    pattern = forms.CharField(
        strip=False,
        max_length=10_000,
        label="Pattern",
        help_text="A regular expression of RE2, which knows no back references.",
    )
    ignore_case = forms.BooleanField(required=False, label="Capitals and small letters are the same")
    negated = forms.BooleanField(required=False, label="A good answer does not match it")


class EqualsForm(KindForm):
    ignore_case = forms.BooleanField(required=False, label="Capitals and small letters are the same")


class NumericWithinForm(KindForm):
    absolute = forms.FloatField(
        required=False,
        min_value=0,
        label="May differ by",
        help_text="Both empty: the number must be the same. The larger of both is allowed.",
    )
    relative = forms.FloatField(
        required=False, min_value=0, label="May differ by a share of", help_text="0.01 is one percent."
    )


class ToolCallForm(KindForm):
    name = forms.CharField(required=False, max_length=10_000, label="Tool", help_text="Empty: the expected tool.")
    arguments = forms.ChoiceField(
        label="Its arguments",
        initial="contained",
        choices=[
            ("contained", "have the expected ones among them"),
            ("equal", "are the expected ones"),
            ("ignored", "do not matter"),
        ],
    )


class LengthForm(KindForm):
    minimum = forms.IntegerField(required=False, min_value=0, label="At least")
    maximum = forms.IntegerField(required=False, min_value=0, label="At most")
    unit = forms.ChoiceField(
        label="Counted in", choices=[("words", "words"), ("characters", "characters"), ("tokens", "tokens")]
    )


class LanguageForm(KindForm):
    language = forms.CharField(
        required=False,
        max_length=3,
        label="Language",
        help_text="Its code, such as en or de. Empty: that of the user's last text.",
    )


class RefusalForm(KindForm):
    phrases = forms.CharField(
        required=False,
        label="Refusals begin with",
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One phrase a line. Empty: usual English ones.",
    )
    expected = forms.BooleanField(required=False, label="A good answer refuses")

    def initial_of(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        return {**definition, "phrases": "\n".join(definition.get("phrases") or ())}

    def definition(self) -> dict[str, Any]:
        lines = self.cleaned_data["phrases"].splitlines()
        return {**super().definition(), "phrases": [line.strip() for line in lines if line.strip()]}


class SimilarityForm(KindForm):
    model = forms.CharField(
        max_length=512,
        label="Model for embeddings",
        help_text="Such as openai/text-embedding-3-small.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class AskingForm(KindForm):
    model = forms.CharField(
        required=False,
        max_length=512,
        label="Judge",
        help_text="A model. Empty: the judge model of the project's settings.",
        widget=forms.TextInput(attrs=_MODELS),
    )
    sees_expected = forms.BooleanField(required=False, initial=True, label="The judge sees the expected answer")
    max_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_JUDGE_TOKENS,
        label="Longest answer in tokens",
        help_text=(
            f"Thoughts included. Empty: {MAX_TOKENS:,}, or {MAX_TOKENS_OF_THINKERS:,} for a model that may think."
        ),
    )


class JudgeForm(AskingForm):
    def __init__(self, data: Mapping[str, Any] | None = None, definition: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, definition)
        self.rubric = Rubric(data, (definition or {}).get("criteria") or ())

    def is_valid(self) -> bool:
        # Both are read, so that all faults are shown at once.
        is_read = self.rubric is not None and self.rubric.is_valid()
        return super().is_valid() and is_read

    def definition(self) -> dict[str, Any]:
        return {**super().definition(), "criteria": self.rubric.criteria() if self.rubric is not None else []}


class PairwiseForm(AskingForm):
    question = forms.CharField(
        max_length=10_000,
        label="Which answer",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The question to the judge, such as: Which answer names the next step?",
    )

    field_order = ("question", "model", "sees_expected", "max_tokens")


class UserFeedbackForm(KindForm):
    """Has no choices: a rating of 1 or 2 within 24 hours is a bad one."""


KIND_FORMS: Mapping[str, type[KindForm]] = {
    "json_schema": JsonSchemaForm,
    "contains": ContainsForm,
    "regex": RegexForm,
    "equals": EqualsForm,
    "numeric_within": NumericWithinForm,
    "tool_call": ToolCallForm,
    "length": LengthForm,
    "language": LanguageForm,
    "refusal": RefusalForm,
    "similarity": SimilarityForm,
    "judge": JudgeForm,
    "pairwise": PairwiseForm,
    "user_feedback": UserFeedbackForm,
}


def kind_form(
    kind: str,
    data: Mapping[str, Any] | None = None,
    definition: Mapping[str, Any] | None = None,
    good_from: float | None = None,
) -> KindForm:
    form = KIND_FORMS[kind](data, definition)
    if good_from is not None:
        form.initial["good_from"] = good_from
    return form
