"""The text that a search reads, one folded text per request, and its indexes, as the schema and the queries need them.

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
# The code points of scripts that write no spaces between words: Thai, Hangul, kana and the ideographs. They are
# numbers, so that ClickHouse and Python mean the same characters.
UNSPACED = (
    (0x0E00, 0x0E7F), (0x1100, 0x11FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip

TOKENS = f"ngrams({LETTERS})"
FEW_TOKENS = f"ngrams({FEW_LETTERS})"
UNSPACED_TOKENS = f"ngrams({IDEOGRAPHS})"
# The ASCII characters that a folded text may have.
FOLDED_ASCII = "".join(chr(code) for code in range(128) if not chr(code).isupper())


def folded(expression: str) -> str:
    """Returns SQL for a text without letter case.

    Capital and small letters of any script are the same, and so are dotted, dotless and plain i (Turkish) and the two
    small sigmas (Greek). Apart from a dot that stands by itself, a text keeps its number of characters.
    """
    lowered = f"lowerUTF8({expression})"
    for found, becomes in FOLDED_LETTERS:
        lowered = f"replaceAll({lowered}, '{found}', '{becomes}')"
    return lowered


# Three letters are replaced: i with a combining dot (a lowered capital dotted I), dotless i, and the final sigma.
FOLDED_LETTERS = (("i\u0307", "i"), ("\u0131", "i"), ("\u03c2", "\u03c3"))

# The zero byte between prompt and completion keeps words and phrases from reaching across, and the one at the end lets
# a character follow on every three.
_BOTH = r"concat(prompt, '\0', completion, '\0')"
TEXT = folded(_BOTH)
# A text of ASCII alone has nothing for the two other indexes, so the regular expressions get an empty one in its place:
# they were a tenth of what a record cost the engine.
_BOTH_BEYOND_ASCII = f"if(isValidASCII(prompt) AND isValidASCII(completion), '', {_BOTH})"
# The pattern matches every three characters that are followed by one beyond ASCII, and few others: runs of such
# characters, up to three characters before each run, and gaps of one or two characters between runs.
_BEYOND_ASCII = r"[\\x00-\\x7F]{0,3}[^\\x00-\\x7F]+(?:[\\x00-\\x7F]{1,2}[^\\x00-\\x7F]+)*"
_UNSPACED = "".join(rf"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in UNSPACED)

BEYOND_ASCII_TEXT = folded(rf"arrayStringConcat(extractAll({_BOTH_BEYOND_ASCII}, '{_BEYOND_ASCII}'), '\0')")
UNSPACED_TEXT = f"replaceRegexpAll({_BOTH_BEYOND_ASCII}, '[^{_UNSPACED}]+', ' ')"

# Packed posting lists take two thirds of the space.
_PACKED = "posting_list_codec = 'bitpacking'"
_INDEXES = {
    "i_letters": f"{TEXT} TYPE text(tokenizer = {TOKENS}, {_PACKED})",
    "i_few_letters": f"{BEYOND_ASCII_TEXT} TYPE text(tokenizer = {FEW_TOKENS}, {_PACKED})",
    "i_ideographs": f"{UNSPACED_TEXT} TYPE text(tokenizer = {UNSPACED_TOKENS}, {_PACKED})",
}
NAMES = frozenset(_INDEXES)


def fours(three: str) -> list[str]:
    """Returns the fours that begin with these three characters and end with an ASCII character."""
    return [three + character for character in FOLDED_ASCII]


def clauses() -> str:
    """Returns the index clauses of `payloads`, which stand for `$text_indexes` in its schema.

    A migration that makes the table anew copies them with `CREATE TABLE … AS payloads`.
    """
    return "".join(f"INDEX {name} {clause},\n    " for name, clause in _INDEXES.items())
