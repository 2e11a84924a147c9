"""The text that a search reads, one folded text per request or shared text, and its indexes for schema and queries.

The first index has the words of the folded text: storing a record costs a fifth of what an index of any four letters
cost. A search asks for parts of words, so the table `vocabulary` has each word of a project once, with an index of
every three characters: a search looks up the words that contain the part, then the texts with those words. Phrases
often consist of words that most texts have, so a second index has the word boundaries: the end of a word and the
beginning of the next. A third has every three characters of what is too long for a word, such as base64; the vocabulary
leaves that out, because a look-up would find a thousand of any size. A fourth has every two characters of scripts
written without spaces, where two are a word. The expressions of the indexes and of the queries must be identical to the
letter, or ClickHouse reads the texts instead.
"""

from __future__ import annotations

LETTERS = 3
IDEOGRAPHS = 2
# The number of characters at the end of a word and at the beginning of the next that tell where they meet.
MEETING = 2
# Words of more bytes are not in the vocabulary, where the empty word says that texts have some. Hashes of 128 and 160
# bits in hexadecimal digits are shorter.
LONGEST = 48
# The code points of scripts that write no spaces between words: Thai, Hangul, kana and the ideographs. They are
# numbers, so that ClickHouse and Python mean the same characters.
UNSPACED = (
    (0x0E00, 0x0E7F), (0x1100, 0x11FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip

WORD_TOKENS = "splitByNonAlpha"
PAIR_TOKENS = "array"
PART_TOKENS = f"ngrams({LETTERS})"
UNSPACED_TOKENS = f"ngrams({IDEOGRAPHS})"


def folded(expression: str) -> str:
    """Returns SQL for a text without letter case.

    Dotted, dotless and plain i (Turkish) are the same, and so are the two small sigmas (Greek). A text keeps its number
    of characters, except for a dot that stands by itself.
    """
    lowered = f"lowerUTF8({expression})"
    for found, becomes in FOLDED_LETTERS:
        lowered = f"replaceAll({lowered}, '{found}', '{becomes}')"
    return lowered


# Three letters are replaced: i with a combining dot (a lowered capital dotted I), dotless i, and the final sigma.
FOLDED_LETTERS = (("i\u0307", "i"), ("\u0131", "i"), ("\u03c2", "\u03c3"))

# The zero byte between prompt and completion keeps words and phrases from reaching across. The one at the end does
# nothing any more: without it the index of ideographs would have another expression, and stores would make it anew.
_BOTH = r"concat(prompt, '\0', completion, '\0')"
TEXT = folded(_BOTH)
# A text of ASCII alone skips the regular expressions, which were a tenth of what a record cost the engine.
_ASCII = "isValidASCII(prompt) AND isValidASCII(completion)"
_UNSPACED = "".join(rf"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in UNSPACED)

# The characters of the index of ideographs separate words. All others beyond ASCII belong to one.
_SPACED = folded(f"replaceRegexpAll({_BOTH}, '[{_UNSPACED}]+', ' ')")
WORDS_TEXT = f"if({_ASCII}, lower({_BOTH}), {_SPACED})"
UNSPACED_TEXT = f"replaceRegexpAll(if({_ASCII}, '', {_BOTH}), '[^{_UNSPACED}]+', ' ')"
WORDS = f"tokens({WORDS_TEXT}, '{WORD_TOKENS}')"
WORD = f"if(length(any_word) > {LONGEST}, '', any_word)"
LONG_TEXT = f"arrayStringConcat(arrayFilter(word -> length(word) > {LONGEST}, {WORDS}), ' ')"
PAIRS = (
    f"arrayMap((a, b) -> concat(rightUTF8(a, {MEETING}), ' ', leftUTF8(b, {MEETING})),"
    f" arrayPopBack({WORDS}), arrayPopFront({WORDS}))"
)

# Packed posting lists take two thirds of the space.
_PACKED = "posting_list_codec = 'bitpacking'"
INDEXES = {
    "i_words": f"{WORDS_TEXT} TYPE text(tokenizer = {WORD_TOKENS}, {_PACKED})",
    "i_long_words": f"{LONG_TEXT} TYPE text(tokenizer = {PART_TOKENS}, {_PACKED})",
    "i_word_pairs": f"{PAIRS} TYPE text(tokenizer = {PAIR_TOKENS}, {_PACKED})",
    "i_ideographs": f"{UNSPACED_TEXT} TYPE text(tokenizer = {UNSPACED_TOKENS}, {_PACKED})",
}
NAMES = frozenset(INDEXES)
_PARTS = f"word TYPE text(tokenizer = {PART_TOKENS}, {_PACKED})"


def clauses(*, known: bool = True) -> dict[str, str]:
    """Returns the values of `$text_indexes` and the other names in the schemas of `payloads` and `vocabulary`. A server
    that does not know text indexes gets none, and a vocabulary without words.

    A migration that recreates the table copies its indexes with `CREATE TABLE … AS payloads`.
    """
    if not known:
        return {"text_indexes": "", "part_index": "", "words": "CAST([], 'Array(String)')", "word": WORD}
    return {
        "text_indexes": "".join(f"INDEX {name} {clause},\n    " for name, clause in INDEXES.items()),
        "part_index": f",\n    INDEX i_parts {_PARTS}",
        "words": WORDS,
        "word": WORD,
    }
