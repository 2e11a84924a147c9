"""Hostile texts cost time in proportion to their length: twice the text, about twice the steps.

Steps are counted where Python works (candidates that a pattern proposes, decisions about them); the patterns are RE2's,
whose time is linear by construction and which refuses patterns that it could not match so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from gateway.guardrails.checks import kinds_beside
from gateway.guardrails.detectors.exfiltration import ConversationIndex, find_exfiltration
from gateway.guardrails.detectors.injection import injection_score
from gateway.guardrails.detectors.pii import PiiKind, find_pii
from gateway.guardrails.detectors.topics import find_topics

HOSTILE = {
    "digits": "1",
    "card groups": "4242 ",
    "spaced digits": "1 2 ",
    "at signs": "a@",
    "dots": "1.",
    "colons": "::1:",
    "addresses": "192.0.2.7 ",
    "social security": "212-34-5678 ",
    "hex groups": "ab:cd:",
    "iban starts": "GB82 WEST 1234 ",
    "plus signs": "+1 2",
    "labels": "phone: call fax ",
    "forget": "forget all ignore your ",
    "questions": "What is it of all?\n",
    "requests": "Explain xyzzy{} plugh{}.\n",
    "letters": "a b ",
    "brackets": "[](//",
    "images": "![a](https://e.example/?q=",
    "nulls": "\x00",
    "combining": "e\u0301\u200b",
    "astral": "\U0001d400 ",
    "overrides": "a\u202eb1\u202c",
    "codes": "%2525&amp;#32;",
    "entities": "&nbsp;4&#50;",
    "emphasis": "**a** _b_ `4`2 ",
    "stars": "*",
    "points": "ab.cd. ef",
    "signs": "ab|🔥<b>](x)",
    "open tags": "a<b",
    "split cards": "4242,",
    "split digits": "4_2_",
    "hidden": "4\U000e0034\ufe01\ufe02\ufe03\ufe04\ufe05",
}
MANY = 2_000
DETECTORS: dict[str, Callable[[str], object]] = {
    "pii": find_pii,
    "injection": lambda text: injection_score(text, untrusted=True),
    "topics": lambda text: find_topics(text, ("ab cd", "a", "xyzzy")),
    "exfiltration": lambda text: find_exfiltration(text, ConversationIndex(["said", text[:1000]])),
}


def steps(work: Callable[[str], object], text: str) -> int:
    """Returns the number of lines of Python that ran."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_detector__twice_the_hostile_text__takes_about_twice_the_steps(detector: str, hostile: str) -> None:
    work, piece = DETECTORS[detector], HOSTILE[hostile]
    small = piece * (4_000 // len(piece))
    work(small)  # The first run fills the caches.
    once, twice = steps(work, small), steps(work, small * 2)
    assert twice <= 2.5 * once + 1000, (once, twice)


@pytest.mark.night
@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_detector__a_megabyte__ends(detector: str, hostile: str) -> None:
    """The test has a time limit, and a detector that is not linear would need days."""
    DETECTORS[detector](HOSTILE[hostile] * (1_000_000 // len(HOSTILE[hostile])))


class Searched(str):
    """A text that counts how often it is searched."""

    times = 0

    def __contains__(self, part: object) -> bool:
        self.times += 1
        return isinstance(part, str) and super().__contains__(part)


def test_personal_data__of_the_operator__is_not_searched_for_again() -> None:
    addresses = [f"10.{number // 250}.{number % 250}.7" for number in range(MANY)]
    operator = Searched(" and ".join(addresses))
    assert kinds_beside(operator, "; ".join(reversed(addresses))) == set()
    assert kinds_beside(operator, "; ".join([*addresses, "10.99.0.8", *addresses])) == {PiiKind.IP}
    assert operator.times == 1


def test_personal_data__that_is_not_the_operators__is_found_once() -> None:
    operator = Searched("Ask ann@example.com or call +1 212 555 0100.")
    text = " ".join(f"192.0.{number // 250}.{number % 250} bob{number}@example.com" for number in range(MANY))
    assert kinds_beside(operator, f"ann@example.com {text}") == {PiiKind.IP, PiiKind.EMAIL}
    assert operator.times == 2
