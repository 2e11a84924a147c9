"""Finds requests in a document that share no words with the rest of it.

An attacker who plants an instruction in another's document (Greshake et al. 2023; BIPIA, Yi et al. 2023) adds a line
that asks for something: a question, or a sentence in the imperative. A document has such lines of its own, but those
share words with the lines around them: a FAQ answers its questions, a letter asks for its subject.
"""

from __future__ import annotations

import re

import re2

_ORDER = re2.compile(
    r"(?i)^(?:please,? |kindly |can you |could you |would you |i need you to |i want you to )?(?:"
    r"explain|describe|compose|draft|develop|generate|summari[sz]e|translate|define|calculate|compute|compare"
    r"|outline|analy[sz]e|evaluate|solve|recommend|discuss|identify|illustrate|tell (?:me|us|a)"
    r"|give (?:me|us|an?)|name|find|determine|classify|predict|break down|walk me|teach me|show me|help me"
    r"|brainstorm|propose|interpret|assess|examine|estimate|simulate|decode|encode|rewrite|paraphrase"
    r"|proofread|recite|sing|imagine|schedule|remind me|book (?:a|me)|order (?:a|me|some)|automate|organi[sz]e"
    r"|research|investigate|look up|detect|rate|rank|formulate|spread|assert|claim|promote|advertise"
    r"|send (?:an?|the) (?:e-?mail|message|text)"
    r"|set (?:an?|up an?) (?:alarm|reminder|timer|meeting)|search for|play|erkläre|beschreibe"
    r"|schreibe?|übersetze|nenne|erstelle|fasse|explica|escribe|traduce|resume|explique|décris|écris|traduis"
    r"|résume"
    r"|(?:write|create|provide|list|suggest|design|plan|prepare|make)\s"
    r"(?:an?|the|some|me|us|one|two|three|five|ten|[0-9]+|code|examples?|ideas|instructions|tips)"
    r")\b"
)
_QUESTION = re2.compile(
    r"(?i)^[\x{bf}]?(?:"
    r"what|what['\x{2019}]s|how|how['\x{2019}]s|who|who['\x{2019}]s|when|where|why|which|whose|do you|does|did"
    r"|is it|is there|is this|are there|are you|have you|should (?:i|we)|can you|could you|would you|will|was"
    r"|wie|warum|wer|wann|wo|welche[rsn]?|qué|cómo|por qué|quién|comment|pourquoi|quels?|quelles?"
    r")\b"
)
# The pattern is a single repeated class: the standard library's matcher is linear in it, and quicker than a call for
# every word.
_WORD = re.compile(r"[^\W_]{4,}")
# The matcher holds the interpreter's lock while it reads, and a line can be a megabyte, so it reads this many
# characters at a time.
_AT_ONCE = 16_384
_QUOTES = "\"')\u201d\u2019"
_MIN_WORDS, _MIN_CONTENT_WORDS, _MAX_CHARACTERS = 3, 2, 300
# A shorter rest of the document has too few words to compare with.
_MIN_DOCUMENT_WORDS = 12
_MAX_CANDIDATES = 200
# Words that stand in any document and any request, and so connect nothing.
_COMMON_WORDS = """
    about above after again also another because been before being below between both could does doing down each
    from have having here hers into just like main make more most much must need only other over please primary
    same should simple some such than that their them then there these they this those through under using very
    want were what when where which while will with would your yours following terms provide explain describe
    write example first different differences give list tell what's
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def has_off_topic_request(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines()]
    candidates = [
        index
        for index, line in enumerate(lines)
        if len(line) <= _MAX_CHARACTERS and line.count(" ") >= _MIN_WORDS - 1 and _is_request(line)
    ][:_MAX_CANDIDATES]
    if not candidates:
        return False
    counted = _counted(lines)
    return any(_is_off_topic(lines[index], counted) for index in candidates)


def _is_request(line: str) -> bool:
    """A line that begins with a small letter continues a sentence, so it is no whole question or order."""
    if line[0].islower():
        return False
    end = line.rstrip(_QUOTES)[-1:]
    data = line.encode("utf-8", "replace")
    if end == "?":
        return _QUESTION.search(data) is not None or _ORDER.search(data) is not None
    return end in (".", "!") and _ORDER.search(data) is not None


def _words(line: str) -> set[str]:
    words: set[str] = set()
    for first in range(0, len(line), _AT_ONCE):
        words.update(map(_stem, _WORD.findall(line[first : first + _AT_ONCE].casefold())))
    return words - _COMMON


def _stem(word: str) -> str:
    return word[:5] if word not in _COMMON else word


def _counted(lines: list[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for line in lines:
        for word in _words(line):
            counted[word] = counted.get(word, 0) + 1
    return counted


def _is_off_topic(line: str, counted: dict[str, int]) -> bool:
    words = _words(line)
    if len(words) < _MIN_CONTENT_WORDS or len(counted) - len(words) < _MIN_DOCUMENT_WORDS:
        return False
    return all(counted[word] == 1 for word in words)
