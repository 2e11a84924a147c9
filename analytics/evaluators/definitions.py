"""The definitions of evaluators, one struct a kind. A definition never changes; an edit is a further version.

The API takes the fields of the struct and keeps them as JSON. Scores are from 0, the worst, to 1, the best.
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
_MaxTokens = Annotated[int, Meta(ge=1, le=1_000_000)]


def compiled(pattern: str, *, ignore_case: bool) -> Any:
    """Returns a regular expression of RE2. Raises re2.error."""
    options = re2.Options()
    options.log_errors = False  # The caller gets the error, and the pattern is no concern of the log.
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """The base of all kinds. `asks_a_model`: a score costs a request of the gateway. `needs_expected`: an answer
    without an expected one cannot be scored. `waits`: the score of an answer is known so long after it."""

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
        """Whether it can score an answer with neither an expected one nor another one beside it."""
        return not self.needs_expected

    @property
    def evaluator_type(self) -> EvaluatorType:
        return EvaluatorType.LLM_JUDGE if self.asks_a_model else EvaluatorType.CODE

    def check(self) -> None:
        """Raises ValidationError, which names the field, where the fields do not fit together."""


class JsonSchema(Definition, frozen=True, tag="json_schema"):
    """The answer is JSON that `schema` allows; without one, the schema of its request's `response_format`."""

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
    """The answer has `value` in it, or the expected text where `value` is left out."""

    value: _Text | None = None
    ignore_case: bool = True
    negated: bool = False

    @property
    def needs_expected(self) -> bool:
        return self.value is None


class Regex(Definition, frozen=True, tag="regex"):
    """The answer has a match of `pattern`, in the syntax of RE2, which has no backtracking."""

    pattern: _Text
    ignore_case: bool = False
    negated: bool = False

    def check(self) -> None:
        try:
            compiled(self.pattern, ignore_case=self.ignore_case)
        except re2.error as error:
            raise _invalid("pattern", f"This is no regular expression of RE2: {_text_of(error)[:300]}") from None


class Equals(Definition, frozen=True, tag="equals"):
    """The answer is the expected one: as JSON where that is no text, else as text, without space at its ends."""

    ignore_case: bool = False

    @property
    def needs_expected(self) -> bool:
        return True


class NumericWithin(Definition, frozen=True, tag="numeric_within"):
    """The last number of the answer differs from the expected one by `absolute` at most, or by the share `relative` of
    it. Both left out, it must be the same."""

    absolute: Annotated[float, Meta(ge=0)] | None = None
    relative: Annotated[float, Meta(ge=0)] | None = None

    @property
    def needs_expected(self) -> bool:
        return True


class ToolCall(Definition, frozen=True, tag="tool_call"):
    """The answer calls the tool `name`, or the expected one, with arguments that hold the expected ones. `arguments`
    says how these are compared."""

    name: _Text | None = None
    arguments: Literal["ignored", "contained", "equal"] = "contained"

    @property
    def needs_expected(self) -> bool:
        return self.name is None


class Length(Definition, frozen=True, tag="length"):
    """The answer has at least `minimum` and at most `maximum` words, characters or completion tokens."""

    unit: Literal["words", "characters", "tokens"] = "words"
    minimum: Annotated[int, Meta(ge=0)] | None = None
    maximum: Annotated[int, Meta(ge=0)] | None = None

    def check(self) -> None:
        if self.minimum is None and self.maximum is None:
            raise _invalid("minimum", "A minimum or a maximum is needed.")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise _invalid("minimum", "The minimum is above the maximum.")


class Language(Definition, frozen=True, tag="language"):
    """The answer is in `language`, an ISO 639-1 code, or in that of the user's last text where it is left out."""

    language: Annotated[str, Meta(pattern="^[a-z]{2,3}$")] | None = None


class Refusal(Definition, frozen=True, tag="refusal"):
    """The answer is no refusal: the provider does not call it one, and it begins with none of the phrases. `expected`:
    a refusal is what is wanted."""

    phrases: _Words = []
    expected: bool = False


class Similarity(Definition, frozen=True, tag="similarity"):
    """The cosine of the embeddings of the answer and of the expected text, by a model for embeddings."""

    asks_a_model: ClassVar[bool] = True
    model: Annotated[str, Meta(min_length=1, max_length=512)]

    @property
    def needs_expected(self) -> bool:
        return True


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grade that a judge may give: its name, its meaning, and the score from 0 to 1 that it stands for."""

    name: Annotated[str, Meta(min_length=1, max_length=50)]
    meaning: _Text
    score: Annotated[float, Meta(ge=0, le=1)]


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One failure mode that a judge looks for, with two or more labels."""

    name: _Name
    meaning: _Text
    labels: Annotated[list[Label], Meta(min_length=2, max_length=MAX_LABELS)]


class Judge(Definition, frozen=True, tag="judge"):
    """A model grades the answer by up to five criteria. The score is the mean of its grades. `model` is the project's
    `judge_model` where it is left out, `max_tokens` the longest answer of the model, its thoughts included."""

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
    """A model says which of two answers is better by `question`. It is asked in both orders; where these disagree, the
    answers are alike. Only experiments compare two answers."""

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


Kind = (
    JsonSchema
    | Contains
    | Regex
    | Equals
    | NumericWithin
    | ToolCall
    | Length
    | Language
    | Refusal
    | Similarity
    | Judge
    | Pairwise
    | UserFeedback
)
KINDS: Mapping[str, type[Definition]] = {str(kind.__struct_config__.tag): kind for kind in Kind.__args__}
"""The kinds by name."""

_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def read_definition(kind: str, fields: Mapping[str, Any]) -> Definition:
    """Returns the definition that the fields of a kind give. Raises ValidationError, which names the field."""
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
    """Returns the fields of a definition, without its kind, as they are stored and shown."""
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
