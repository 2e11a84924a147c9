from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analytics.shipper.texts import prompt_text

OWN_TEXTS = Path(__file__).with_name("texts.jsonl")

_CONSONANTS = "b br ch d dr f fl g gr h j k kl l m n p pr r s sh st t tr v z"
# Every syllable is consonants, then vowels, so that two of them in a row can be read in one way only.
SYLLABLES = tuple(
    consonants + vowels
    for vowels in ("a", "e", "i", "o", "u", "ai", "ei", "ia", "ou")
    for consonants in _CONSONANTS.split()
)
WORDS = 30_000
_OPTIONS = ("tools", "tool_choice", "response_format", "stop", "temperature", "max_tokens", "top_p")
_MARK = "\u241f"  # The mark is the place for the words of a single request; it occurs in no shipped text.
_CHARACTERS_PER_TOKEN = 4


class TextFileError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer. `…_head` and `…_tail` surround the words of the single request.

    The prompt is plain text as the shipper derives it; `request_…` is the JSON of the body from `"messages"` on, and
    `answer_json` a JSON string with its quotes. `begun` is the answer of a stream that the client left early.
    """

    prompt_head: str
    prompt_tail: str
    request_head: str
    request_tail: str
    answer: str
    answer_json: str
    begun_answer: str
    begun_json: str

    @property
    def prompt_tokens(self) -> int:
        return 1 + (len(self.prompt_head) + len(self.prompt_tail)) // _CHARACTERS_PER_TOKEN

    @property
    def answer_tokens(self) -> int:
        return 1 + len(self.answer) // _CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of all exchanges; a conversation is `lengths[i]` of them in a row, from `firsts[i]` on."""

    exchanges: Sequence[Exchange]
    firsts: Sequence[int]
    lengths: Sequence[int]

    @property
    def bytes_per_request(self) -> int:
        parts = (
            len(text.encode())
            for one in self.exchanges
            for text in (
                one.prompt_head,
                one.prompt_tail,
                one.request_head,
                one.request_tail,
                one.answer,
                one.answer_json,
            )
        )
        return 1 + sum(parts) // len(self.exchanges)


def read_texts(file: Path) -> Texts:
    """Reads one conversation per line: `messages` in the form of chat completions, and optional fields of the request.

    A user's message without an answer gets one of our own texts. Raises TextFileError.
    """
    answers = [text for row in _rows(OWN_TEXTS) for text in _answers(row)]
    exchanges: list[Exchange] = []
    firsts, lengths = [], []
    for number, row in enumerate(_rows(file)):
        found = list(_exchanges(row, answers[number % len(answers)]))
        firsts.append(len(exchanges))
        lengths.append(len(found))
        exchanges += found
    if not exchanges:
        raise TextFileError(f"{file} holds no conversation.")
    return Texts(exchanges, firsts, lengths)


def word(rank: int) -> str:
    """Returns the word of a rank from 0 to WORDS - 1. Words are drawn as often as a language uses its word of that
    rank.

    A word has two syllables, the digits of the rank to the base of SYLLABLES, so all words are different.
    """
    second, first = divmod(rank, len(SYLLABLES))
    return SYLLABLES[first].capitalize() + SYLLABLES[second]


def _rows(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TextFileError(f"{file}: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _row(f"{file}, line {number}", line)


def _row(place: str, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TextFileError(f"{place}: not JSON ({error})") from error
    messages = row.get("messages") if isinstance(row, dict) else None
    if not isinstance(messages, list) or not any(_role(message) == "user" for message in messages):
        raise TextFileError(f"{place}: not a conversation: it needs `messages`, one of them by the user")
    return dict(row)


def _exchanges(row: Mapping[str, Any], other_answer: str) -> Iterator[Exchange]:
    messages = row["messages"]
    options = {name: row[name] for name in _OPTIONS if row.get(name) is not None}
    for index, message in enumerate(messages):
        if _role(message) == "user":
            answer = next(_answers({"messages": messages[index + 1 : index + 2]}), other_answer)
            yield _exchange(messages[: index + 1], options, answer)


def _exchange(messages: Sequence[Any], options: Mapping[str, Any], answer: str) -> Exchange:
    request = _json({"messages": [*messages[:-1], _marked(messages[-1])], **options})
    prompt = prompt_text(request.encode("utf-8", "replace")).decode()
    prompt_head, _, prompt_tail = prompt.partition(_MARK)
    request_head, _, request_tail = request[1:].partition(_MARK)
    begun = answer[: len(answer) // 2]
    return Exchange(prompt_head, prompt_tail, request_head, request_tail, answer, _json(answer), begun, _json(begun))


def _marked(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": _MARK}, *content]}
    return {**message, "content": f"{_MARK}{content if isinstance(content, str) else ''}"}


def _answers(row: Mapping[str, Any]) -> Iterator[str]:
    for message in row["messages"]:
        if _role(message) == "assistant" and isinstance(message.get("content"), str) and message["content"]:
            yield _text(message["content"])


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _json(value: Any) -> str:
    return _text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
