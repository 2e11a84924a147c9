"""Renders a model's Markdown as safe HTML: no images, no raw markup, and links whose address is visible.

Two libraries work in sequence: the parser escapes the text's HTML, and the sanitizer admits only the tags and
attributes named here.
"""

from __future__ import annotations

from collections.abc import Iterable

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from typing_extensions import override

CHARACTERS = 24_000
"""Of one text. The worst one of that length takes a second, an answer a few milliseconds."""

_SCHEMES = ("http", "https")
_TAGS = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "ul", "ol", "li", "blockquote",
    "code", "pre", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ALIGNMENTS = {f"text-align:{side}": side for side in ("left", "center", "right")}


def rendered(text: str) -> str:
    """Returns HTML. A link shows its address unless its text is the address."""
    return nh3.clean(
        str(_PARSER.render(text)),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        allowed_classes={"th": set(_ALIGNMENTS.values()), "td": set(_ALIGNMENTS.values())},
        url_schemes=set(_SCHEMES),
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


class _Parser(MarkdownIt):
    @override
    def validateLink(self, url: str) -> bool:
        """Refuses an address without a host, which would be one of this service, where the reader is signed in."""
        return url.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


def _show_targets(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_with_targets(token.children))


def _with_targets(tokens: Iterable[Token]) -> Iterable[Token]:
    target, link_text = "", ""
    for token in tokens:
        yield token
        if token.type == "link_open":
            target, link_text = str(token.attrGet("href") or ""), ""
        elif token.type == "link_close":
            if target != link_text:
                yield Token("text", "", 0, content=f" ({target})")
        else:
            link_text += token.content


def _align_by_class(state: StateCore) -> None:
    # The page's content security policy allows no inline styles.
    for token in state.tokens:
        side = _ALIGNMENTS.get(str(token.attrs.pop("style", "")))
        if side:
            token.attrSet("class", side)


def _parser() -> MarkdownIt:
    made = _Parser("commonmark", {"html": False})
    made.enable(["table", "strikethrough"])
    made.disable(["image", "html_block", "html_inline"])
    made.core.ruler.push("targets", _show_targets)
    made.core.ruler.push("alignment", _align_by_class)
    return made


_PARSER = _parser()
