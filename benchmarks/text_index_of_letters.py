"""The text indexes of every four letters that `payloads` had before the index of words, for comparison."""

from __future__ import annotations

from typing import Any

from analytics.clickhouse.text_index import INDEXES as OF_TODAY
from analytics.clickhouse.text_index import TEXT, UNSPACED_TEXT, UNSPACED_TOKENS, folded
from analytics.queries.search_terms import _is_unspaced, _runs, _some

_BOTH = r"if(isValidASCII(prompt) AND isValidASCII(completion), '', concat(prompt, '\0', completion, '\0'))"
_PATTERN = r"[\\x00-\\x7F]{0,3}[^\\x00-\\x7F]+(?:[\\x00-\\x7F]{1,2}[^\\x00-\\x7F]+)*"
_BEYOND_ASCII = folded(rf"arrayStringConcat(extractAll({_BOTH}, '{_PATTERN}'), '\0')")
_FOLDED_ASCII = "".join(chr(code) for code in range(128) if not chr(code).isupper())

INDEXES = {
    "i_letters": f"{TEXT} TYPE text(tokenizer = ngrams(4), posting_list_codec = 'bitpacking')",
    "i_few_letters": f"{_BEYOND_ASCII} TYPE text(tokenizer = ngrams(3), posting_list_codec = 'bitpacking')",
    "i_ideographs": OF_TODAY["i_ideographs"],
}


def narrowed(term: str) -> tuple[str, dict[str, Any]]:
    if len(term) > 3:
        return f" AND hasAllTokens({TEXT}, {{letters:Array(String)}}, 'ngrams(4)')", {"letters": _some(_runs(term, 4))}
    if len(term) == 3:
        before_ascii = f"hasAnyTokens({TEXT}, {{fours:Array(String)}}, 'ngrams(4)')"
        beyond = f"hasAllTokens({_BEYOND_ASCII}, {{three:Array(String)}}, 'ngrams(3)')"
        return f" AND ({before_ascii} OR {beyond})", {"fours": [term + one for one in _FOLDED_ASCII], "three": [term]}
    if len(term) == 2 and all(map(_is_unspaced, term)):
        tokens = f"hasAllTokens({UNSPACED_TEXT}, {{unspaced:Array(String)}}, '{UNSPACED_TOKENS}')"
        return f" AND {tokens}", {"unspaced": [term]}
    return "", {}
