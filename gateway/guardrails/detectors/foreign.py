"""Requests in a document that speak of nothing the document speaks of.

Whoever plants an order in somebody else's text (Greshake et al. 2023; BIPIA, Yi et al. 2023) adds a line that asks for
something: a question, or a sentence in the imperative. A document has such lines of its own, but those share words with
what surrounds them: a FAQ answers its questions, a letter asks for what it is about.
"""

from __future__ import annotations

import re2

_REQUEST = re2.compile(
    r"(?i)^(?:please,? |kindly |can you |could you |would you |i need you to |i want you to )?"
    r"(?:explain|describe|write|compose|draft|develop|provide|generate|create|list|summari[sz]e|translate"
    r"|define|calculate|compute|compare|outline|analy[sz]e|evaluate|solve|suggest|recommend|discuss"
    r"|identify|illustrate|design|plan|tell (?:me|us)|give (?:me|us|an?)|name|find|determine|classify"
    r"|predict|convert|break down|walk me|teach me|show me|help me|brainstorm|prepare|propose|interpret"
    r"|assess|examine|estimate|simulate|decode|encode|rewrite|paraphrase|proofread|recite|sing|imagine"
    r"|schedule|set (?:a|an|up)|remind me|book (?:a|me)|order (?:a|me)|automate|organi[sz]e|research"
    r"|investigate|search for|look up|detect|rate|rank|score|what|how|who|when|where|why|which|whose|do you"
    r"|does|did|is it|is there|is this|are there|are you|have you ever|should i|should we|tell|play|send"
    r"|arrange|set|formulate|debug|implement|code|program|sort|construct|build|make (?:a|an|me)|highlight"
    r"|inform|promote|advertise|mention|assert|claim|spread|include|integrate|incorporate|add|insert|append"
    r"|replace|reverse|use|erkläre|beschreibe|schreibe?|übersetze|nenne|erstelle|was|wie|warum|wer|explica"
    r"|escribe|traduce|qué|cómo|por qué|explique|décris|écris|traduis|que|comment|pourquoi|quels?)\b"
)
_WORD = re2.compile(r"[\pL\pN]{4,}")
_QUOTES = "\"')\u201d\u2019"
_MIN_WORDS, _MAX_CHARACTERS = 3, 300
# Where the rest is shorter there is nothing to compare with.
_MIN_DOCUMENT_WORDS = 12
_MAX_CANDIDATES = 200
# Words of any document, and of requests, that connect nothing.
_COMMON = frozenset(
    [
        "about",
        "above",
        "after",
        "again",
        "also",
        "another",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "could",
        "does",
        "doing",
        "down",
        "each",
        "from",
        "have",
        "having",
        "here",
        "hers",
        "into",
        "just",
        "like",
        "main",
        "make",
        "more",
        "most",
        "much",
        "must",
        "need",
        "only",
        "other",
        "over",
        "please",
        "primary",
        "same",
        "should",
        "simple",
        "some",
        "such",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "under",
        "using",
        "very",
        "want",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
        "would",
        "your",
        "yours",
        "following",
        "terms",
        "provide",
        "explain",
        "describe",
        "write",
        "example",
        "first",
        "different",
        "differences",
        "give",
        "list",
        "tell",
        "what's",
    ]
)


def foreign_requests(text: str) -> bool:
    """Whether a line asks for something in words that no other line has."""
    lines = [line.strip() for line in text.splitlines()]
    candidates = [
        index
        for index, line in enumerate(lines)
        if len(line) <= _MAX_CHARACTERS and line.count(" ") >= _MIN_WORDS - 1 and _is_request(line)
    ][:_MAX_CANDIDATES]
    if not candidates:
        return False
    counted = _counted(lines)
    return any(_is_foreign(lines[index], counted) for index in candidates)


def _is_request(line: str) -> bool:
    ends = line.rstrip(_QUOTES)[-1:]
    if not ends or ends not in ".?!:":
        return False
    return bool(_REQUEST.search(line.encode("utf-8", "replace")))


def _words(line: str) -> set[str]:
    found = _WORD.findall(line.casefold().encode("utf-8", "replace"))
    return {_stem(word.decode("utf-8", "replace")) for word in found} - _COMMON


def _stem(word: str) -> str:
    """Enough for a plural or a tense to be the same word."""
    return word[:5] if word not in _COMMON else word


def _counted(lines: list[str]) -> dict[str, int]:
    """In how many lines a word stands."""
    counted: dict[str, int] = {}
    for line in lines:
        for word in _words(line):
            counted[word] = counted.get(word, 0) + 1
    return counted


def _is_foreign(line: str, counted: dict[str, int]) -> bool:
    words = _words(line)
    if not words or len(counted) - len(words) < _MIN_DOCUMENT_WORDS:
        return False
    return all(counted[word] == 1 for word in words)
