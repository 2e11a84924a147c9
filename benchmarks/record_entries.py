from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord, SpoolEntry
from analytics.traffic.texts import OWN_TEXTS, WORDS, word
from benchmarks import payloads

PROJECT = UUID("00000000-0000-4000-8000-000000000001")

_REQUEST_BYTES = 1024
_ANSWER_BYTES = 1536
_SENTENCES = 40
_REQUESTS_PER_SESSION = 6
_SESSIONS_PER_USER = 4
_FAILED_SHARE = 0.02
_TRACED_SHARE = 0.2
MIXED = "mixed"
_LAST_LATIN = 0x24F
KINDS: Mapping[str, Callable[[str], bool]] = {
    MIXED: lambda _: True,
    "ascii": str.isascii,
    "latin": lambda text: not text.isascii() and ord(max(text)) <= _LAST_LATIN,
    "cjk": lambda text: 3 * sum("\u3040" <= character <= "\u9fff" for character in text) > len(text),
}
"""The texts by their letters: of all languages, and of one kind of letters, which are sent as UTF-8."""
_MODELS = (
    ("openai", "gpt-4o-mini"),
    ("openai", "gpt-4o"),
    ("anthropic", "claude-sonnet-4-5"),
    ("google", "gemini-2.5-flash"),
)


def entries(
    count: int, *, seed: int, same_texts: bool = False, texts: bool = True, kind: str = MIXED
) -> list[SpoolEntry]:
    """Returns records of the last seconds; another `seed` gives other requests, sessions and texts. With `same_texts`
    all have the texts of `benchmarks.gateway`, without `texts` none has any."""
    chance = random.Random(seed)
    known = sentences(kind)
    now = time.time_ns() // 1000
    made = []
    for number in range(count):
        provider, model = chance.choices(_MODELS, weights=(8, 4, 2, 1))[0]
        if same_texts:
            bodies = payloads.request_body(model), payloads.answer()
        else:
            asked, told = text(chance, known), text(chance, known)
            bodies = _request(model, asked, kind), _answer(model, told, kind, size=_ANSWER_BYTES)
        record = _record(number, now - (count - number) * 100, chance, provider, model)
        answered = record.outcome is Outcome.SUCCESS
        made.append(SpoolEntry(record, *(bodies[0], bodies[1] if answered else b"") if texts else ()))
    return made


def conversations(count: int, *, seed: int, kilobytes: int, turns: int, kind: str) -> list[list[SpoolEntry]]:
    """Returns for each turn the requests of `count` conversations. Each repeats the history before it; the last has
    that many KB with its answer, three eighths of them in answers."""
    chance = random.Random(seed)
    known, now = sentences(kind), time.time_ns() // 1000
    size = kilobytes * 1024 // turns
    histories: list[list[dict[str, str]]] = [[] for _ in range(count)]
    made = []
    for turn in range(turns):
        made.append(list[SpoolEntry]())
        for number, history in enumerate(histories):
            provider, model = chance.choices(_MODELS, weights=(8, 4, 2, 1))[0]
            history.append({"role": "user", "content": _text_of(chance, known, size * 5 // 8)})
            answer = _text_of(chance, known, size * 3 // 8)
            record = _record(turn * count + number, now - (turns - turn) * 1_000 - number, chance, provider, model)
            record = msgspec.structs.replace(
                record, session_id=f"talk-{seed}-{number}", outcome=Outcome.SUCCESS, retention_days=30
            )
            body = _encoded({"model": model, "messages": history, "temperature": 0.2}, kind)
            made[-1].append(SpoolEntry(record, body, _answer(model, answer, kind)))
            history.append({"role": "assistant", "content": answer})
    return made


def _text_of(chance: random.Random, known: Sequence[str], size: int) -> str:
    parts, left = list[str](), size
    while left > 0:
        parts.append(f"{chance.choice(known)}{word(chance.randrange(WORDS))} ")
        left -= len(parts[-1].encode())
    return "".join(parts)


def sentences(kind: str = MIXED) -> list[str]:
    rows = [json.loads(line) for line in OWN_TEXTS.read_text(encoding="utf-8").splitlines()]
    contents = [message["content"] for row in rows for message in row["messages"]]
    found = [f"{one.strip('. ')}. " for content in contents if isinstance(content, str) for one in content.split(". ")]
    return list(filter(KINDS[kind], found))


def _encoded(body: Mapping[str, Any], kind: str) -> bytes:
    # The texts of all languages are written as the clients of Python do that escape what is not ASCII.
    return json.dumps(body, ensure_ascii=kind == MIXED).encode()


def text(chance: random.Random, known: Sequence[str]) -> str:
    parts = chance.choices(known, k=_SENTENCES)
    parts.insert(chance.randrange(_SENTENCES // 4), f"{word(chance.randrange(WORDS))} {word(chance.randrange(WORDS))} ")
    return "".join(parts)


def _record(number: int, ts: int, chance: random.Random, provider: str, model: str) -> RequestRecord:
    session = number // _REQUESTS_PER_SESSION
    failed = chance.random() < _FAILED_SHARE
    latency_ms = int(chance.lognormvariate(6.5, 0.6))
    tokens = (250, 0) if failed else (250, 300)
    attempt = AttemptRecord(
        provider, model, 500 if failed else 200, "server_error" if failed else "", latency_ms, *tokens,
        cost_usd="" if failed else "0.0002175000", offset_us=180,
    )  # fmt: skip
    return RequestRecord(
        request_id=str(UUID(int=(ts // 1000) << 80 | 7 << 76 | 2 << 62 | chance.getrandbits(62))),
        project_id=str(PROJECT),
        ts=ts,
        outcome=Outcome.ERROR if failed else Outcome.SUCCESS,
        status_code=502 if failed else 200,
        api_key_id=1 + number % 3,
        session_id=f"session-{ts // 1_000_000}-{session}",
        user_id=f"user-{session // _SESSIONS_PER_USER % 500}",
        provider=provider,
        model=model,
        requested_model=f"{provider}/{model}",
        error_type="provider_error" if failed else "",
        error_code="server_error" if failed else "",
        error_message="The provider failed." if failed else "",
        finish_reason="" if failed else "stop",
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        cost_known=True,
        cost_input_usd="0.0000375000",
        cost_output_usd="" if failed else "0.0001800000",
        cost_usd="0.0000375000" if failed else "0.0002175000",
        cost_source="catalog",
        latency_ms=latency_ms,
        attempts=(attempt,),
        attributes={"client_request_id": f"{chance.getrandbits(64):016x}"},
        trace_id=f"{chance.getrandbits(128):032x}" if chance.random() < _TRACED_SHARE else "",
    )


def _request(model: str, text: str, kind: str) -> bytes:
    messages = [
        {"role": "system", "content": "You are a helpful assistant of a shop."},
        {"role": "user", "content": ""},
    ]
    body = {"model": model, "messages": messages, "temperature": 0.2}
    messages[1]["content"] = text[: _REQUEST_BYTES - len(json.dumps(body))]
    return _encoded(body, kind)


def _answer(model: str, text: str, kind: str, *, size: int | None = None) -> bytes:
    """Cuts the text so that the answer has `size` characters."""
    message = {"role": "assistant", "content": "", "refusal": None}
    body = {
        "id": "chatcmpl-0000000000000000000000",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 250, "completion_tokens": 300, "total_tokens": 550},
    }
    message["content"] = text if size is None else text[: size - len(json.dumps(body))]
    return _encoded(body, kind)
