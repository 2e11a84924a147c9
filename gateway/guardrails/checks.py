from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from gateway.guardrails.detectors.accounts import has_card_across
from gateway.guardrails.detectors.characters import encoded
from gateway.guardrails.detectors.injection import compile_rules, injection_score
from gateway.guardrails.detectors.pii import PiiKind, find_pii
from gateway.guardrails.detectors.topics import find_topics
from gateway.guardrails.texts import Segment, Speaker, field_segments, text_segments, user_texts, variable_segments
from gateway.guardrails.tools import same_tool, tools_of
from gateway.guardrails.verdicts import Guardrail
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.protocol.marked_documents import Delimiters

# A longer list of entities would take more memory in the cache than the text itself.
_MAX_ENTITIES = 100


Found = TypeVar("Found")

# Texts shorter than this are as quick to read again as to look up.
_MIN_CHARACTERS = 200
_ENTRIES = 4096


class DigestCache(Generic[Found]):
    """A detector that reads each text once. The cache keeps digests of texts and what was found, never a text.

    `terms` are what the detector looks for, if that differs between calls.
    """

    def __init__(self, detect: Callable[..., Found], *, worth: Callable[[Found], bool] = lambda _: True) -> None:
        self._detect = detect
        self._worth = worth
        self._found: dict[Hashable, Found] = {}

    def __call__(self, text: str, *terms: Hashable) -> Found:
        if len(text) < _MIN_CHARACTERS:
            return self._detect(text, *terms)
        digest = hashlib.blake2b(encoded(text), digest_size=16).digest(), terms
        try:
            return self._found[digest]
        except KeyError:
            found = self._detect(text, *terms)
        if not self._worth(found):
            return found
        if len(self._found) >= _ENTRIES:
            self._found.clear()
        self._found[digest] = found
        return found


_personal_data = DigestCache(find_pii, worth=lambda found: len(found) <= _MAX_ENTITIES)
_topics = DigestCache(find_topics)
_score = DigestCache(partial(injection_score, untrusted=False))
_untrusted_score = DigestCache(partial(injection_score, untrusted=True))


class Finding(NamedTuple):
    """`message` is for the client, and quotes nothing but settings and figures."""

    guardrail: Guardrail
    message: str
    detail: str = ""
    score: float = 1.0


class Request:
    """The request as the checks see it. Its texts are extracted on first use, because some checks never need them.

    `variables` are the values for the request's managed prompt. `beside` are the fields beside the messages as they are
    sent, in the client's own protocol if a provider may get them; without them, those of `fields`. Text between
    `delimiters` in user messages is a document.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        tokens: int,
        variables: Mapping[str, Any],
        beside: Mapping[str, Any] | None = None,
        *,
        delimiters: Delimiters = (),
    ) -> None:
        self._fields = fields
        self._variables = variables
        self._delimiters = delimiters
        self._beside = fields if beside is None else beside
        self.tokens = tokens

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return (
            *text_segments(self._fields, self._delimiters),
            *field_segments(self._beside),
            *variable_segments(self._variables),
        )

    @property
    def user_texts(self) -> Iterator[str]:
        return user_texts(self._fields)

    @cached_property
    def tools(self) -> frozenset[str]:
        return frozenset(tools_of(self._fields))

    def segments_by(self, *speakers: Speaker) -> Iterator[Segment]:
        return (segment for segment in self.segments if segment.speaker in speakers)


class InputCheck(Protocol):
    def inspect(self, request: Request) -> Iterable[Finding]: ...


class PromptLength:
    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens

    def inspect(self, request: Request) -> Iterable[Finding]:
        if request.tokens > self._max_tokens:
            message = f"The prompt has about {request.tokens} tokens, this project allows {self._max_tokens}"
            yield Finding(Guardrail.PROMPT_TOO_LONG, message, f"{request.tokens} tokens")


class BlockedTools:
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = {same_tool(name): name for name in names}

    def inspect(self, request: Request) -> Iterable[Finding]:
        for name in sorted({same_tool(tool) for tool in request.tools} & self._names.keys()):
            message = f"The tool {self._names[name]!r} is blocked in this project"
            yield Finding(Guardrail.BLOCKED_TOOL, message, self._names[name])


class BlockedTopics:
    """Finds blocked topics in the words of users, tools and documents.

    The operator's prompt may name a topic to forbid it, and the model's answers to decline it, so both are left out.
    """

    def __init__(self, topics: tuple[str, ...]) -> None:
        self._topics = topics

    def inspect(self, request: Request) -> Iterable[Finding]:
        segments = request.segments_by(Speaker.USER, Speaker.VARIABLE, Speaker.UNTRUSTED)
        found = {topic for segment in segments for topic in _topics(segment.text, self._topics)}
        for topic in self._topics:
            if topic in found:
                yield Finding(
                    Guardrail.BLOCKED_TOPIC, "The request names a topic that is blocked in this project", topic
                )


class PersonalData:
    """Finds personal data in all texts but the operator's own prompt.

    Values of a prompt's variables are not the operator's words and are searched too. A card may be split over user
    messages.
    """

    def inspect(self, request: Request) -> Iterable[Finding]:
        operator = "\n".join(segment.text for segment in request.segments_by(Speaker.OPERATOR))
        found = {
            entity.kind for segment in request.segments_by(Speaker.VARIABLE) for entity in _personal_data(segment.text)
        }
        for segment in request.segments_by(Speaker.USER, Speaker.UNTRUSTED, Speaker.ASSISTANT):
            found |= kinds_beside(operator, segment.text)
        if PiiKind.CARD not in found and has_card_across(map(encoded, request.user_texts)):
            found.add(PiiKind.CARD)
        for kind in sorted(found):
            yield Finding(Guardrail.PII, f"The request holds personal data: {kind.value}", kind.value)


def kinds_beside(operator: str, text: str) -> set[PiiKind]:
    """Returns the kinds of personal data in `text` that the operator's text does not contain.

    Both texts may hold thousands of entities: the operator's text is searched only for values that are new.
    """
    found: set[PiiKind] = set()
    known: set[str] | None = None
    for entity in _personal_data(text):
        if entity.kind in found:
            continue
        if operator:
            if known is None:
                known = {operator[own.start : own.end] for own in _personal_data(operator)}
            value = text[entity.start : entity.end]
            if value in known or value in operator:
                known.add(value)
                continue
        found.add(entity.kind)
    return found


class PromptInjection:
    """Finds injections in the words of users and, by stricter rules, in documents and tool results.

    The latter should contain no instructions.
    """

    def inspect(self, request: Request) -> Iterable[Finding]:
        for segment in request.segments_by(Speaker.USER, Speaker.VARIABLE, Speaker.UNTRUSTED):
            scored = (_untrusted_score if segment.speaker is Speaker.UNTRUSTED else _score)(segment.text)
            if scored.is_injection:
                message = "The request looks like a prompt injection"
                yield Finding(Guardrail.PROMPT_INJECTION, message, ", ".join(scored.rules), scored.score)


def prepare_checks(settings: GuardrailSettings) -> None:
    """Compiles what the checks need in the calling thread, so that no request waits for it."""
    if settings.prompt_injection_detection:
        compile_rules()


@lru_cache(maxsize=512)
def checks_of(settings: GuardrailSettings) -> tuple[InputCheck, ...]:
    checks: list[InputCheck] = []
    if settings.max_prompt_tokens is not None:
        checks.append(PromptLength(settings.max_prompt_tokens))
    if settings.blocked_tools:
        checks.append(BlockedTools(settings.blocked_tools))
    if settings.blocked_input_topics:
        checks.append(BlockedTopics(settings.blocked_input_topics))
    if settings.pii_block_on_detect:
        checks.append(PersonalData())
    if settings.prompt_injection_detection:
        checks.append(PromptInjection())
    return tuple(checks)
