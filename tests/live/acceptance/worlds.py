"""The worlds of the acceptance runs as data: two versions of a prompt, the clients' requests, and their timeouts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

JSON = dict[str, Any]

_WORDS = ("have you got any green tea from the hills that a friend of mine told me about last year " * 8).split()
# The exponent of the questions' frequencies: a few are sent all the time, most of them once.
_ZIPF = 1.05


@dataclass(frozen=True)
class World:
    """One kind of target. `baseline` and `target` are the versions' fields besides a system prompt; `settings` are the
    project's.

    Clients send `variables` in turn and leave after `client_timeout` seconds, or never. Some of the `questions` are
    repeated; 0 makes every question new, of at most `words` words. Their `models` answer where the version's own fails;
    with `sessions` above 0 they belong to so many sessions, in turn. `rollout` has the fields that differ from the
    defaults. `because` stands in the verdict's explanation against a worse target, and is empty for a harmless one.
    """

    name: str
    target: Mapping[str, Any]
    baseline: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Sequence[Mapping[str, str]] = ({},)
    client_timeout: float | None = 60.0
    stream: bool = False
    words: int = 20
    questions: int = 0
    models: Sequence[str] = ()
    sessions: int = 0
    rollout: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""

    @property
    def harmless(self) -> bool:
        return not self.because

    @property
    def versions(self) -> tuple[JSON, JSON]:
        usual = {"system_prompt": "You sell tea.", "model": "sandbox/echo"}
        return {**usual, **self.baseline}, {**usual, "system_prompt": "You know all about tea.", **self.target}

    def session(self, number: int) -> str:
        return f"{self.name} {number % self.sessions}" if self.sessions else ""

    def request(self, number: int, chance: random.Random) -> JSON:
        return {
            **({"models": list(self.models)} if self.models else {}),
            "model": "auto",
            "messages": [{"role": "user", "content": self._question(number, chance)}],
            "prompt_config": self.name,
            "prompt_variables": dict(self.variables[number % len(self.variables)]),
            "stream": self.stream,
        }

    def _question(self, number: int, chance: random.Random) -> str:
        if self.questions:
            weights = accumulate(1 / rank**_ZIPF for rank in range(1, self.questions + 1))
            number = chance.choices(range(self.questions), cum_weights=list(weights))[0]
        # Each question has a fixed length, drawn from its number.
        words = random.Random(number).randint(min(5, self.words), self.words)
        return " ".join([f"{number}:", *_WORDS[:words]])


def _wants(name: str) -> JSON:
    return {
        "system_prompt": "You sell {{goods}}." if name == "goods" else f"You sell {{{{goods}}}}, {{{{{name}}}}}.",
        "variables": [
            {"name": needed, "type": "string", "required": True} for needed in dict.fromkeys(("goods", name))
        ],
    }


_TEA = {"goods": "tea"}
_POLITE = {**_TEA, "tone": "politely"}
_CACHE = {"cache_ttl_seconds": 3600}
_GUARDED = {"guardrails": {"trust_mode": "enforce", "blocked_output_topics": ["casino"]}}
# The sandbox writes the constant, which is too long for the schema.
_TEA_SCHEMA = {"type": "object", "required": ["tea"], "properties": {"tea": {"const": "green", "maxLength": 2}}}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "offer", "schema": _TEA_SCHEMA}}
# An answer of the model `long` costs some $0.003, one of `echo` less than $0.0001.
_SESSION_BUDGET = {"session_budget_usd": 0.005}
_SOON = 4.0

WORLDS: tuple[World, ...] = (
    World("error-500", {"model": "sandbox/error-500"}, because="errors"),
    World("404, nobody serves the model", {"model": "no-such-model"}, because="nobody serves the model"),
    World("404, its vendor has no such model", {"model": "sandbox/error-404"}, because="nobody serves the model"),
    World("422, all clients", _wants("tone"), _wants("goods"), variables=(_TEA,), because="a variable is missing"),
    World(
        "422, half of the clients",
        _wants("tone"),
        _wants("goods"),
        variables=(_TEA, _POLITE),
        because="a variable is missing",
    ),
    World(
        "hangs, clients wait 200 s", {"model": "sandbox/hang"}, client_timeout=200.0, because="no answer for too long"
    ),
    World("hangs, clients wait on", {"model": "sandbox/hang"}, client_timeout=None, because="no answer for too long"),
    World("hangs, clients leave after 4 s", {"model": "sandbox/hang"}, client_timeout=_SOON, because="the client left"),
    World(
        "hangs at half, clients wait 200 s",
        {"model": "sandbox/hang-half"},
        client_timeout=200.0,
        because="no answer for too long",
    ),
    World(
        "hangs in mid-stream, clients leave",
        {"model": "sandbox/hang-mid-stream"},
        stream=True,
        client_timeout=_SOON,
        because="the client left",
    ),
    World(
        "slow stream, clients leave",
        {"model": "sandbox/slow"},
        stream=True,
        client_timeout=_SOON,
        words=120,
        because="against",
    ),
    World(
        "guardrail refuses the answers",
        {"model": "sandbox/mirror", "system_prompt": "You know the casino."},
        {"model": "sandbox/mirror"},
        _GUARDED,
        because="refused by a guardrail",
    ),
    World(
        "error-500 behind a cold cache",
        {"model": "sandbox/error-500"},
        settings=_CACHE,
        questions=300,
        because="errors",
    ),
    World(
        "error-500, all of the baseline cached",
        {"model": "sandbox/error-500"},
        settings=_CACHE,
        questions=20,
        because="against",
    ),
    World(
        "fails at half, all of the baseline cached",
        {"model": "sandbox/half"},
        settings=_CACHE,
        questions=20,
        because="against",
    ),
    World(
        "its prompt is too long",
        {"system_prompt": "You know all about tea. " * 50},
        settings={"guardrails": {"trust_mode": "enforce", "max_prompt_tokens": 200}},
        because="refused by a guardrail",
    ),
    World("another model, fails at half", {"model": "sandbox/half"}, because="errors"),
    World("another model, slower", {"model": "sandbox/slow"}, because="latency"),
    World("another model, dearer", {"model": "sandbox/long"}, because="cost of a request"),
    World(
        "every answer breaks its schema",
        {"response_format": _SCHEMA},
        because="breaks its schema",
    ),
    World("every answer is cut off", {"max_tokens": 1}, because="cut off"),
    World("every answer is empty", {"model": "sandbox/empty"}, because="empty"),
    World(
        "another model answers for its own",
        {"model": "sandbox/error-503"},
        models=("sandbox/echo",),
        because="served by another model",
    ),
    World(
        "uses up the budgets of its sessions",
        {"model": "sandbox/long"},
        settings=_SESSION_BUDGET,
        sessions=20,
        rollout={"allocation_type": "session_sticky", "policy": {"cost_per_request": "ignore"}},
        because="budget",
    ),
    World("another model, harmless", {"model": "sandbox/judge"}),
    World("harmless", {}),
    World("harmless, all of the baseline cached", {}, settings=_CACHE, questions=40),
    World(
        "harmless beside a warm cache",
        {"model": "sandbox/half"},
        {"model": "sandbox/half"},
        _CACHE,
        questions=300,
    ),
    World(
        "harmless, clients leave either",
        {"model": "sandbox/slow"},
        {"model": "sandbox/slow"},
        stream=True,
        client_timeout=_SOON,
        words=45,
    ),
)
