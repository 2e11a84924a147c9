from __future__ import annotations

from functools import singledispatch

from analytics.evaluators.definitions import (
    Contains,
    Definition,
    Equals,
    JsonSchema,
    Judge,
    Language,
    Length,
    NumericWithin,
    Pairwise,
    Refusal,
    Regex,
    Similarity,
    ToolCall,
    UserFeedback,
)

_ANY_CASE = ", in capitals or small letters"
_ARGUMENTS = {
    "contained": "with the expected arguments, and perhaps others",
    "equal": "with the expected arguments and no others",
    "ignored": "with any arguments",
}


@singledispatch
def in_words(definition: Definition) -> str:
    return f"A good answer passes {definition.kind}."


@in_words.register
def _schema(definition: JsonSchema) -> str:
    if definition.schema is None:
        return "A good answer is JSON that the schema of its request's response_format allows."
    return "A good answer is JSON that the schema allows."


@in_words.register
def _contains(definition: Contains) -> str:
    what = "the expected text" if definition.value is None else f"“{definition.value}”"
    has = "does not have" if definition.negated else "has"
    return f"A good answer {has} {what} in it{_ANY_CASE if definition.ignore_case else ''}."


@in_words.register
def _regex(definition: Regex) -> str:
    has = "has no match" if definition.negated else "has a match"
    return f"A good answer {has} of {definition.pattern}{_ANY_CASE if definition.ignore_case else ''}."


@in_words.register
def _equals(definition: Equals) -> str:
    return f"A good answer is the expected one{_ANY_CASE if definition.ignore_case else ''}."


@in_words.register
def _number(definition: NumericWithin) -> str:
    allowed = [] if definition.absolute is None else [f"{definition.absolute:g}"]
    allowed += [] if definition.relative is None else [f"{100 * definition.relative:g} % of it"]
    if not allowed:
        return "The last number of a good answer is the expected one."
    return f"The last number of a good answer differs from the expected one by at most {' or '.join(allowed)}."


@in_words.register
def _tool(definition: ToolCall) -> str:
    name = "the expected tool" if definition.name is None else f"the tool {definition.name}"
    return f"A good answer calls {name} {_ARGUMENTS[definition.arguments]}."


@in_words.register
def _length(definition: Length) -> str:
    bounds = [] if definition.minimum is None else [f"at least {definition.minimum:,}"]
    bounds += [] if definition.maximum is None else [f"at most {definition.maximum:,}"]
    return f"A good answer has {' and '.join(bounds)} {definition.unit}."


@in_words.register
def _language(definition: Language) -> str:
    return f"A good answer is in {definition.language or 'the language of the last text of the user'}."


@in_words.register
def _refusal(definition: Refusal) -> str:
    begins = f" Refusals begin with: {'; '.join(definition.phrases)}." if definition.phrases else ""
    return f"A good answer {'refuses' if definition.expected else 'refuses nothing'}.{begins}"


@in_words.register
def _similarity(definition: Similarity) -> str:
    return f"A good answer is like the expected text, by the embeddings of {definition.model}."


@in_words.register
def _judge(definition: Judge) -> str:
    names = ", ".join(criterion.name for criterion in definition.criteria)
    return f"{_asked(definition.model)} grades the answer by {names}; the score is the mean of its grades."


@in_words.register
def _pairwise(definition: Pairwise) -> str:
    return f"{_asked(definition.model)} is asked of two answers, in both orders: {definition.question}"


@in_words.register
def _users(definition: UserFeedback) -> str:
    return "No user rates a good answer 1 or 2 within 24 hours. Only online evaluations score by it, a day later."


def _asked(model: str) -> str:
    return model or "The judge model of the settings"
