from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.dialects.story import Reply

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """`model` is the body's, or that of the address."""

    body: Mapping[str, Any]
    model: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


# What a rule finds in a request that it refuses: the words that the vendor's sentence names. None where it takes it.
Found = Mapping[str, Any] | None


@dataclass(frozen=True)
class Rule:
    """One refusal. `source` is a public report that quotes the vendor's answer, a recorded exchange, or the vendor's
    page, which may lack the sentence. `message` and `param` are the vendor's words, with places for what `find`
    returns."""

    name: str
    source: str
    message: str
    find: Callable[[Request], Found]
    param: str | None = None
    code: str | None = None
    status: int = 400


class Refused(AssertionError):
    """`reply` is the answer that the vendor's client gets."""

    def __init__(self, rule: str, message: str, reply: Reply) -> None:
        super().__init__(f"{message} ({rule})")
        self.rule = rule
        self.reply = reply


@dataclass(frozen=True)
class Table:
    """A protocol's rules in the order in which they are tried. `error` makes an error body from status, message,
    parameter and code."""

    error: Callable[[int, str, str | None, str | None], Json]
    rules: tuple[Rule, ...]
    content_type: str = "application/json"

    def check(self, request: Request) -> None:
        for rule in self.rules:
            found = rule.find(request)
            if found is not None:
                raise self._refusal(rule, found)

    def _refusal(self, rule: Rule, found: Mapping[str, Any]) -> Refused:
        message = rule.message.format(**found)
        param = None if rule.param is None else rule.param.format(**found)
        body = self.error(rule.status, message, param, rule.code)
        headers = {"content-type": self.content_type}
        return Refused(rule.name, message, Reply(rule.status, headers, json.dumps(body, ensure_ascii=False).encode()))


def only_mappings(values: Any) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(values, list):
        return []
    return [(index, value) for index, value in enumerate(values) if isinstance(value, Mapping)]
