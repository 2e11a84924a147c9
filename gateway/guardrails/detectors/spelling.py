"""Undoes spellings that a model reads as plain text: HTML entities, percent codes, Markdown emphasis, signs and emoji.

Entities, percent codes and emphasis at the border of a word have only one reading. A sign between two letters may stand
for a blank (`ignore.all`) or for nothing (`ig.nore`), so such a text has several readings.
"""

from __future__ import annotations

import html
import re
from urllib.parse import unquote

import re2

from gateway.guardrails.detectors.characters import encoded
from gateway.guardrails.detectors.reading import Reading, as_written

# Entities of entities (`&amp;#32;`) and codes of codes (`%2520`) are undone up to this depth.
_MAX_DEPTH = 4
_ENTITY = r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z][a-zA-Z0-9]{1,31};)"
_CODES = re.compile(rf"{_ENTITY}|(?:%[0-9a-fA-F]{{2}})+")
_LETTER = r"[^\W\d_]"
# Patterns begin with the sign that they are about, whose neighbour they look back at: the standard library's matcher
# then reads on to the next such sign, and tries no place in between.
#
# CommonMark's marks at the border of a word, and GitHub's for struck text (https://spec.commonmark.org/0.31.2/). Marks
# between two letters are signs within a word.
_MARKS = "*_`~"
_EMPHASIS = re.compile(r"[*_`~](?<![*_`~].)(?:(?<!\w.)[*_`~]*(?=[^\W_])|(?<=[^\W_].)[*_`~]*(?![\w*_`~]))", re.DOTALL)
_MARKED_NUMBER = re.compile(r"[*_`~](?:(?=[0-9@])|(?<=[0-9@].))")
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\([^()\s]{0,300}\)")

# Signs that stand between the words of no sentence: ASCII's, Latin-1's, dots and daggers, currencies, arrows to
# dingbats, emoji; each of HTML's tags is one sign.
_SIGNS = (
    r"#$%&*+/<=>@\[\\\]^_`{|}~\xa1\xa6-\xa9\xab-\xb1\xb6\xb7\xbb\xbf\xd7\xf7"
    "\u2016\u2017\u2020-\u2027\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff\u2e30-\u2e4f\u30fb\U0001f000-\U0001faff"
)
_PUNCTUATION = r".,;:!?\-"
_POINTS = "." + r"\-" + "\xb7\u2022\u2027\u30fb"
_REST_OF_TAG = r"(?:(?<=<)/?[a-zA-Z!][^<>]{0,100}>)?"
_SIGN = rf"(?:[{_SIGNS}]{_REST_OF_TAG})"
_BLANK = r"[^\S\n]"
_OF_WORD = r"(?:[^\W\d_]|['\"\u2018-\u201f])"
_RUN_OF_SIGNS = re.compile(rf"[{_SIGNS}]{_REST_OF_TAG}(?:{_SIGN}|[{_PUNCTUATION}]|{_BLANK})*")
_LETTERS = re.compile(rf"{_OF_WORD}{{1,2}}")
_LETTERS_BEFORE = re.compile(rf"{_OF_WORD}{_OF_WORD}{_BLANK}?\Z")
# Punctuation with a blank behind it ends a clause, unless there is one in front of it, too.
_PUNCTUATION_BETWEEN = re.compile(
    rf"[{_PUNCTUATION}](?:(?<={_OF_WORD}{_OF_WORD}.)[{_PUNCTUATION}]*(?={_LETTER})"
    rf"|(?<={_LETTER}.)[{_PUNCTUATION}]*(?={_OF_WORD}{_OF_WORD})|(?<={_BLANK}.)\.*(?={_BLANK}))"
)
_POINT_BEHIND_PUNCTUATION = re.compile(rf"\.(?<={_LETTER}[,;:!?]\.)(?={_LETTER})")
_POINT_WITHIN = re.compile(rf"[{_POINTS}](?<={_LETTER}.)(?={_LETTER})")
_WITHIN = re.compile(
    rf"[{_SIGNS}{_PUNCTUATION}](?<={_LETTER}.){_REST_OF_TAG}(?:{_SIGN}|[{_PUNCTUATION}])*(?={_LETTER})"
)
# Points behind one word after the other end no sentences.
_WORDS_WITH_POINTS = re.compile(rf"(?<![^\W_])(?:{_LETTER}+\.{_BLANK}+){{3,}}")
_HAS_WORDS_WITH_POINTS = re2.compile(r"(?:\pL\.[ \t]+\pL+\.[ \t]+\pL+\.[ \t])")
# Hyphens belong to words, but between single letters.
_SIGNED = re2.compile(
    "[" + _SIGNS + r"]|\pL[.,;:!?]+\pL|(?:^|[^\pL])\pL-\pL-|[ \t]\.+[ \t]|" + _HAS_WORDS_WITH_POINTS.pattern
)
_GAP = "\u2014"


def decoded(text: str) -> str:
    if not _may_have_codes(text):
        return text
    for _ in range(_MAX_DEPTH):
        before, text = text, _CODES.sub(_decoded, text)
        if text == before:
            break
    return text


def undone(text: str) -> str:
    text = decoded(text)
    return _EMPHASIS.sub("", text) if any(map(text.__contains__, _MARKS)) else text


def undone_number(text: str) -> Reading | None:
    marked = _MARKED_NUMBER.search(text) is not None
    if not marked and not (_may_have_codes(text) and _CODES.search(text)):
        return None
    read = as_written(text)
    for _ in range(_MAX_DEPTH):
        before, read = read, read.substituted(_CODES, _decoded)
        if read.text == before.text:
            break
    if marked:
        read = read.substituted(_EMPHASIS, lambda _: "")
    return read if read.text != text else None


def _may_have_codes(text: str) -> bool:
    return text.find("&") >= 0 or text.find("%") >= 0


def _decoded(match: re.Match[str]) -> str:
    found = match[0]
    return unquote(found) if found[0] == "%" else html.unescape(found)


def respellings(text: str) -> list[str]:
    """Returns the other readings of a text with links, or with signs within words or between them.

    The first is without the targets of links. The others have a blank for each sign; no signs; or no points within
    words and blanks for other signs.
    """
    if not _SIGNED.search(encoded(text)):
        return []
    shown = _LINK.sub(r"\1", text)
    made = [shown, _spread(shown), _WITHIN.sub("", shown)]
    pointless = _POINT_WITHIN.sub("", shown)
    if pointless != shown:
        made.append(_spread(pointless))
    return [read for read in dict.fromkeys(made) if read != text]


def _spread(text: str) -> str:
    if _HAS_WORDS_WITH_POINTS.search(encoded(text)):
        text = _WORDS_WITH_POINTS.sub(lambda words: words[0].replace(".", ""), text)
    spread = _RUN_OF_SIGNS.sub(_blank_between_words, text)
    spread = _PUNCTUATION_BETWEEN.sub(" ", _POINT_BEHIND_PUNCTUATION.sub(" ", spread))
    # A sign between two blanks leaves both.
    return text if spread == text else spread.replace("  ", " ").replace("  ", " ")


def _blank_between_words(signs: re.Match[str]) -> str:
    """One of the words has two letters or more: a row of single letters (`a|b|c`) is a table or code.

    With blanks it would look like a word that is spelled out.
    """
    text, start = signs.string, signs.start()
    after = _LETTERS.match(text, signs.end())
    if after is None or start == 0 or text[start - 1] == "\n":
        return signs[0]
    return " " if len(after[0]) == 2 or _LETTERS_BEFORE.search(text, max(0, start - 3), start) else signs[0]


def new_sentences(text: str, others: list[str]) -> str:
    """Returns the sentences of other readings that the text does not have, one a line and each once.

    A dash replaces left-out sentences, so that sentences around it are not read as one.
    """
    known = set(_sentences(text))
    found: list[str] = []
    for read in others:
        is_gap = True
        for sentence in _sentences(read):
            if sentence in known:
                is_gap = True
                continue
            found += [_GAP, sentence] if is_gap else [sentence]
            known.add(sentence)
            is_gap = False
    return "\n".join(found)


def _sentences(text: str) -> list[str]:
    return text.replace(". ", ".\n").replace("! ", "!\n").replace("? ", "?\n").split("\n")
