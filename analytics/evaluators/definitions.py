"""The definitions of evaluators, one struct for each kind. A definition never changes; an edit is a new version.

The API takes the fields of the struct and stores them as JSON. Scores are from 0, the worst, to 1, the best.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

import jsonschema_rs
import msgspec
import re2
from msgspec import Meta

from analytics.models.evaluators import EvaluatorType
from core.errors import ValidationError

MAX_DEFINITION_CHARACTERS = 100_000
MAX_CRITERIA = 5
MAX_LABELS = 9

_Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
_Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
_Words = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=200)]
_Model = Annotated[str, Meta(max_length=512)]
MAX_JUDGE_TOKENS = 1_000_000
_MaxTokens = Annotated[int, Meta(ge=1, le=MAX_JUDGE_TOKENS)]


def compiled(pattern: str, *, ignore_case: bool) -> Any:
    """Uses RE2's syntax. Raises re2.error."""
    options = re2.Options()
    options.log_errors = False  # The caller gets the error, and the pattern is no concern of the log.
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """The base of all kinds. `asks_a_model`: each score costs a gateway request. `needs_expected`: an answer without an
    expected one cannot be scored. `waits`: the delay until an answer's score is known."""

    asks_a_model: ClassVar[bool] = False
    waits: ClassVar[timedelta] = timedelta(0)

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def needs_expected(self) -> bool:
        return False

    @property
    def scores_alone(self) -> bool:
        return not self.needs_expected

    @property
    def evaluator_type(self) -> EvaluatorType:
        return EvaluatorType.LLM_JUDGE if self.asks_a_model else EvaluatorType.CODE

    def check(self) -> None:
        """Raises ValidationError, which names the field, if the fields do not fit together."""


class JsonSchema(Definition, frozen=True, tag="json_schema"):
    """The answer is JSON that matches `schema`; without one, the schema of its request's `response_format`."""

    schema: dict[str, Any] | None = None

    def check(self) -> None:
        if self.schema is None:
            return
        try:
            jsonschema_rs.meta.validate(self.schema)
            jsonschema_rs.validator_for(self.schema, offline=True, validate_formats=False)
        except jsonschema_rs.ValidationError as error:
            place = ".".join(["schema", *map(str, error.instance_path)])
            raise _invalid(place, f"This is no JSON schema: {error.message[:300]}") from None
        except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
            raise _invalid("schema", f"This is no JSON schema: {str(error)[:300]}") from None


class Contains(Definition, frozen=True, tag="contains"):
    """The answer contains `value`, or the expected text if `value` is left out."""

    value: _Text | None = None
    ignore_case: bool = True
    negated: bool = False

    @property
    def needs_expected(self) -> bool:
        return self.value is None


class Regex(Definition, frozen=True, tag="regex"):
    """The answer matches `pattern` somewhere. The syntax is RE2's, which never backtracks."""

    pattern: _Text
    ignore_case: bool = False
    negated: bool = False

    def check(self) -> None:
        try:
            compiled(self.pattern, ignore_case=self.ignore_case)
        except re2.error as error:
            raise _invalid("pattern", f"This is no regular expression of RE2: {_text_of(error)[:300]}") from None


class Equals(Definition, frozen=True, tag="equals"):
    """The answer equals the expected one: as JSON if that is not a text, else as text without surrounding space."""

    ignore_case: bool = False

    @property
    def needs_expected(self) -> bool:
        return True


class NumericWithin(Definition, frozen=True, tag="numeric_within"):
    """The answer's last number differs from the expected one by at most `absolute`, or by the share `relative` of it.

    Without either it must be equal.
    """

    absolute: Annotated[float, Meta(ge=0)] | None = None
    relative: Annotated[float, Meta(ge=0)] | None = None

    @property
    def needs_expected(self) -> bool:
        return True


class ToolCall(Definition, frozen=True, tag="tool_call"):
    """The answer calls the tool `name`, or the expected one, with the expected arguments.

    `arguments` says how they are compared.
    """

    name: _Text | None = None
    arguments: Literal["ignored", "contained", "equal"] = "contained"

    @property
    def needs_expected(self) -> bool:
        return self.name is None


class Length(Definition, frozen=True, tag="length"):
    unit: Literal["words", "characters", "tokens"] = "words"
    minimum: Annotated[int, Meta(ge=0)] | None = None
    maximum: Annotated[int, Meta(ge=0)] | None = None

    def check(self) -> None:
        if self.minimum is None and self.maximum is None:
            raise _invalid("minimum", "A minimum or a maximum is needed.")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise _invalid("minimum", "The minimum is above the maximum.")


class Language(Definition, frozen=True, tag="language"):
    """The answer is in `language`, an ISO 639-1 code, or by default in the language of the user's last text."""

    language: Annotated[str, Meta(pattern="^[a-z]{2,3}$")] | None = None


class Refusal(Definition, frozen=True, tag="refusal"):
    """The answer is not a refusal: neither the provider nor one of the phrases at its beginning says so.

    With `expected`, a refusal is wanted.
    """

    phrases: _Words = []
    expected: bool = False


class Similarity(Definition, frozen=True, tag="similarity"):
    asks_a_model: ClassVar[bool] = True
    model: Annotated[str, Meta(min_length=1, max_length=512)]

    @property
    def needs_expected(self) -> bool:
        return True


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=50)]
    meaning: _Text
    score: Annotated[float, Meta(ge=0, le=1)]


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: _Name
    meaning: _Text
    labels: Annotated[list[Label], Meta(min_length=2, max_length=MAX_LABELS)]


class Judge(Definition, frozen=True, tag="judge"):
    """A model grades the answer by up to five criteria; the score is the mean.

    `model` defaults to the project's `judge_model`. `max_tokens` limits the model's answer, its thoughts included.
    """

    asks_a_model: ClassVar[bool] = True
    criteria: Annotated[list[Criterion], Meta(min_length=1, max_length=MAX_CRITERIA)]
    model: _Model = ""
    sees_expected: bool = True
    max_tokens: _MaxTokens | None = None

    def check(self) -> None:
        _unique("criteria", [criterion.name for criterion in self.criteria])
        for place, criterion in enumerate(self.criteria):
            _unique(f"criteria.{place}.labels", [label.name for label in criterion.labels])
            if len({label.score for label in criterion.labels}) < 2:
                raise _invalid(f"criteria.{place}.labels", "All labels stand for the same score.")


class Pairwise(Definition, frozen=True, tag="pairwise"):
    """A model says which of two answers is better by `question`.

    It is asked in both orders; a disagreement is a tie. Only experiments compare two answers.
    """

    asks_a_model: ClassVar[bool] = True
    question: _Text
    model: _Model = ""
    sees_expected: bool = True
    max_tokens: _MaxTokens | None = None

    @property
    def scores_alone(self) -> bool:
        return False


class UserFeedback(Definition, frozen=True, tag="user_feedback"):
    """No user rated the answer bad within 24 hours. Only online evaluations score by it."""

    waits: ClassVar[timedelta] = timedelta(hours=24)

    @property
    def evaluator_type(self) -> EvaluatorType:
        return EvaluatorType.USER


KINDS: Mapping[str, type[Definition]] = {str(kind.__struct_config__.tag): kind for kind in Definition.__subclasses__()}
"""The kinds by name."""


def model_of(definition: Definition) -> str:
    """Returns the model that the definition names; empty for none."""
    return definition.model if isinstance(definition, Judge | Pairwise | Similarity) else ""


_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def read_definition(kind: str, fields: Mapping[str, Any]) -> Definition:
    known = KINDS.get(kind)
    if known is None:
        raise ValidationError.of_field("kind", f"There is no such kind. There are {', '.join(KINDS)}.")
    if "kind" in fields:
        raise _invalid("kind", "The kind stands beside the definition.")
    if len(json.dumps(fields, default=str)) > MAX_DEFINITION_CHARACTERS:
        raise ValidationError.of_field("definition", f"It has more than {MAX_DEFINITION_CHARACTERS} characters.")
    try:
        definition = msgspec.convert(dict(fields), known)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _explained(str(error)) from None
    definition.check()
    return definition


def stored_form(definition: Definition) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(definition)
    del fields["kind"]
    return fields


def _unique(field: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise _invalid(field, "Two of them have the same name.")


def _explained(message: str) -> ValidationError:
    found = _PATH.search(message)
    problem = message[: found.start()] if found else message
    path = re.sub(r"\[(\d+)\]", r".\1", found["path"]) if found else ""
    return _invalid(path.strip("."), f"{problem[:300]}.")


def _invalid(path: str, problem: str) -> ValidationError:
    return ValidationError.of_field(".".join(filter(None, ("definition", path))), problem)


def _text_of(error: Exception) -> str:
    detail = error.args[0] if error.args else ""
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
