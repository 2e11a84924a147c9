"""What a text search looks at: one folded text per request, and the indexes on it. Migrations and queries share this.

The indexes hold every four characters in a row of the folded text, so that a part of a word is found as fast as a
word. Three characters are found by all the fours that they begin, which are known where the fourth is an ASCII
character; where it is another, an index of their own has them. A third index has every two characters of scripts
written without spaces, where two are a word. The expressions of the indexes and of the queries have to be the same to
the letter, or ClickHouse reads the texts instead.
"""

from __future__ import annotations

LETTERS = 4
FEW_LETTERS = 3
IDEOGRAPHS = 2
# Scripts whose words are not set apart, by code points, so that ClickHouse and Python mean the same: Thai, Hangul, kana
# and the ideographs.
UNSPACED = (
    (0x0E00, 0x0E7F), (0x1100, 0x11FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip

TOKENS = f"ngrams({LETTERS})"
FEW_TOKENS = f"ngrams({FEW_LETTERS})"
UNSPACED_TOKENS = f"ngrams({IDEOGRAPHS})"
# What ASCII has once it is folded.
FOLDED_ASCII = "".join(chr(code) for code in range(128) if not chr(code).isupper())


def folded(expression: str) -> str:
    """SQL for a text without letter case.

    Capital and small letters of any script are the same, and so are dotted, dotless and plain i (Turkish) and the two
    small sigmas (Greek). Apart from a dot that stands by itself, a text keeps its number of characters.
    """
    lowered = f"lowerUTF8({expression})"
    for found, becomes in FOLDED_LETTERS:
        lowered = f"replaceAll({lowered}, '{found}', '{becomes}')"
    return lowered


# i with a combining dot, which is what a capital dotted I becomes; dotless i; the sigma at the end of a word.
FOLDED_LETTERS = (("i\u0307", "i"), ("\u0131", "i"), ("\u03c2", "\u03c3"))

# A zero byte between the two: no word or phrase reaches from the prompt into the completion. And one at the end: a
# character follows on every three.
_BOTH = r"concat(prompt, '\0', completion, '\0')"
TEXT = folded(_BOTH)
# Holds every three characters that are followed by one beyond ASCII, and few others: such runs, up to three characters
# before each, and what is too short between two.
_BEYOND_ASCII = r"[\\x00-\\x7F]{0,3}[^\\x00-\\x7F]+(?:[\\x00-\\x7F]{1,2}[^\\x00-\\x7F]+)*"
BEYOND_ASCII_TEXT = folded(rf"arrayStringConcat(extractAll({_BOTH}, '{_BEYOND_ASCII}'), '\0')")
_UNSPACED = "".join(rf"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in UNSPACED)
UNSPACED_TEXT = f"replaceRegexpAll({_BOTH}, '[^{_UNSPACED}]+', ' ')"

# Packed posting lists take two thirds of the space.
_PACKED = "posting_list_codec = 'bitpacking'"
_INDEXES = {
    "i_letters": f"{TEXT} TYPE text(tokenizer = {TOKENS}, {_PACKED})",
    "i_few_letters": f"{BEYOND_ASCII_TEXT} TYPE text(tokenizer = {FEW_TOKENS}, {_PACKED})",
    "i_ideographs": f"{UNSPACED_TEXT} TYPE text(tokenizer = {UNSPACED_TOKENS}, {_PACKED})",
}
NAMES = frozenset(_INDEXES)


def fours(three: str) -> list[str]:
    """What the index of fours has for these three characters where an ASCII character follows on them."""
    return [three + character for character in FOLDED_ASCII]


def clauses() -> str:
    """Returns the index clauses of `payloads`, which stand for `$text_indexes` in its schema.

    A migration that makes the table anew copies them with `CREATE TABLE … AS payloads`.
    """
    return "".join(f"INDEX {name} {clause},\n    " for name, clause in _INDEXES.items())
