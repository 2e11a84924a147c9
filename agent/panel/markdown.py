"""Renders a model's Markdown as safe HTML: no images, no raw markup, links whose address is visible, and links of this
service only where its own code made them.

Two libraries work in sequence: the parser escapes the text's HTML, and the sanitizer admits only the tags and
attributes named here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

CHARACTERS = 24_000
"""Of one text. The worst one of that length takes a second, an answer a few milliseconds."""

_SCHEMES = ("http", "https")
_TAGS = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "ul", "ol", "li", "blockquote",
    "code", "pre", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ALIGNMENTS = {f"text-align:{side}": side for side in ("left", "center", "right")}
# An id or a name in backticks is looked up; a longer text is code.
_MAX_NAME_CHARACTERS = 200
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)

Links = Mapping[str, str]
FindLinks = Callable[[set[str]], Links]


def no_links(names: set[str]) -> Links:
    return {}


def rendered(text: str) -> str:
    return rendered_texts([text], no_links)[0]


def rendered_texts(texts: Sequence[str], find_links: FindLinks) -> list[str]:
    """`find_links` gets the UUIDs and backticked texts, and returns the addresses of those that have a page in this
    service.

    A link to elsewhere shows its address unless its text is the address.
    """
    parsed = [_PARSER.parse(text) for text in texts]
    links = find_links({name for tokens in parsed for name in _names(tokens)})
    return [_html(tokens, links) for tokens in parsed]


def _names(tokens: Iterable[Token]) -> Iterator[str]:
    for token in _linkable(tokens):
        if token.type == "text":
            yield from _UUID.findall(token.content)
        elif len(token.content) <= _MAX_NAME_CHARACTERS:
            yield token.content


def _linkable(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        is_linked = False
        for child in token.children or ():
            is_linked = child.type == "link_open" or (is_linked and child.type != "link_close")
            if child.type in ("text", "code_inline") and not is_linked:
                yield child


def _html(tokens: list[Token], links: Links) -> str:
    if links:
        for token in tokens:
            linkable = {id(child) for child in _linkable([token])}
            token.children = token.children and [
                made for child in token.children for made in _linked(child, links if id(child) in linkable else {})
            ]
    addresses = frozenset(links.values())
    return nh3.clean(
        str(_PARSER.renderer.render(tokens, _PARSER.options, {})),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        tag_attribute_values={"a": {"target": {"_blank"}}},
        allowed_classes={"th": set(_ALIGNMENTS.values()), "td": set(_ALIGNMENTS.values())},
        url_schemes=set(_SCHEMES),
        url_relative=lambda url: url if url in addresses else None,
        link_rel="noopener noreferrer nofollow",
    )


def _linked(token: Token, links: Links) -> Iterator[Token]:
    if token.type == "code_inline" and token.content in links:
        yield from _link([token], links[token.content])
    elif token.type == "text" and links:
        place = 0
        for found in _UUID.finditer(token.content):
            if found[0] in links:
                yield _text(token.content[place : found.start()])
                yield from _link([_text(found[0])], links[found[0]])
                place = found.end()
        yield _text(token.content[place:])
    else:
        yield token


def _link(inner: Iterable[Token], address: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": address})
    yield from inner
    yield Token("link_close", "a", -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _is_elsewhere(url: str) -> bool:
    return url.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        """Refuses an address without a host: it would be one of this service, where the reader is signed in."""
        return _is_elsewhere(url)


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
            token.attrSet("target", "_blank")
        elif token.type == "link_close":
            if target != link_text:
                yield _text(f" ({target})")
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
