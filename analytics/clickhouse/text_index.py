"""What a text search looks at: one folded text per request, and the indexes on it. Migrations and queries share this.

The indexes hold every three characters in a row of the folded text, so that a part of a word is found as fast as a
word, and every two characters of scripts written without spaces, where two are a word. The expressions of the indexes
and of the queries have to be the same to the letter, or ClickHouse reads the texts instead.
"""

from __future__ import annotations

LETTERS = 3
IDEOGRAPHS = 2
# Scripts whose words are not set apart, by code points, so that ClickHouse and Python mean the same: Thai, Hangul, kana
# and the ideographs.
UNSPACED = (
    (0x0E00, 0x0E7F), (0x1100, 0x11FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip

TOKENS = f"ngrams({LETTERS})"
UNSPACED_TOKENS = f"ngrams({IDEOGRAPHS})"


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

# A zero byte between the two: no word or phrase reaches from the prompt into the completion.
_BOTH = r"concat(prompt, '\0', completion)"
TEXT = folded(_BOTH)
_UNSPACED = "".join(rf"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in UNSPACED)
UNSPACED_TEXT = f"replaceRegexpAll({_BOTH}, '[^{_UNSPACED}]+', ' ')"

# The clauses of `payloads`. A migration that makes that table anew copies them with `CREATE TABLE … AS payloads`.
_INDEXES = {
    "i_text": f"{TEXT} TYPE text(tokenizer = {TOKENS})",
    "i_unspaced": f"{UNSPACED_TEXT} TYPE text(tokenizer = {UNSPACED_TOKENS})",
}
# Those of versions before this one: words, cut at everything that is not an ASCII letter or digit.
_FORMER = ("i_prompt", "i_completion")


def migration_values(supported: bool) -> dict[str, str]:
    """What stands for `$text_indexes` and its like in migrations; nothing where the server has no such indexes."""
    if not supported:
        return dict.fromkeys(("text_indexes", "text_index_change", "text_index_build"), "")
    added = [f"ADD INDEX IF NOT EXISTS {name} {clause}" for name, clause in _INDEXES.items()]
    dropped = [f"DROP INDEX IF EXISTS {name}" for name in _FORMER]
    built = [f"MATERIALIZE INDEX {name}" for name in _INDEXES]
    return {
        "text_indexes": "".join(f"INDEX {name} {clause},\n    " for name, clause in _INDEXES.items()),
        "text_index_change": f"ALTER TABLE payloads {', '.join([*added, *dropped])}",
        "text_index_build": f"ALTER TABLE payloads {', '.join(built)}",
    }
