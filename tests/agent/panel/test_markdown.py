from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from agent.panel.markdown import rendered, rendered_texts
from tests.tables.cases import tabled

_PIECES = [
    "<script>", "</script>", "<img src=x onerror=a()>", "![a](http://e.example/x)", "[a](javascript:b())", "[a](http://e)",
    "<http://e.example>", "<javascript:a>", "[a]: data:text/html,x\n", "[a]", "](", "&#106;avascript:", "&lt;", "`",
    "```\n", "\n", "\n\n", "> ", "- ", "1. ", "# ", "|", "|-|-|\n", "**", "_", "~~", "\\", '"', "'",
    '<a href="javascript:b">', "<svg/onload=a()>", "<!--", "-->", "<![CDATA[", "\0", "style=x", "text", " ", "\t",
    "java\nscript:", '(http://e" onx="',
]  # fmt: skip
_BARE = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "ul", "li", "blockquote", "code", "pre",
    "table", "thead", "tbody", "tr",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "rel", "target"}, "ol": {"start"}, "th": {"class"}, "td": {"class"}}


class _Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.others: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=40).map("".join))
def test_rendered__whatever_is_written__has_harmless_elements_only(text: str) -> None:
    elements = _Elements(rendered(text))
    assert elements.others == []
    for tag, attributes in elements.found:
        assert tag in _BARE or tag in _ATTRIBUTES
        assert set(attributes) <= _ATTRIBUTES.get(tag, set())
        if tag == "a":
            assert re.match("https?://", attributes["href"] or "")
            assert (attributes["rel"], attributes["target"]) == ("noopener noreferrer nofollow", "_blank")


@tabled
def test_rendered__markdown__is_html(text: str, html: str) -> None:
    assert rendered(text) == html


@tabled
def test_rendered__link__shows_where_it_leads(text: str, shown: str) -> None:
    assert re.sub("<[^>]+>", "", rendered(text)).strip() == shown


def test_rendered__table__keeps_its_alignment() -> None:
    html = rendered("|a|b|c|\n|-|--:|:-:|\n|1|2|3|")
    assert '<td>1</td>\n<td class="right">2</td>\n<td class="center">3</td>' in html


_REQUEST = "019aa000-0000-7000-8000-00000000000a"
_LINKS = {_REQUEST: "/admin/requests/1/", "ann": "/admin/requests/?user_id=ann", "a b": "/admin/b/?a=1&b=2"}


def linked(text: str) -> str:
    return rendered_texts([text], lambda names: {name: _LINKS[name] for name in names if name in _LINKS})[0]


@tabled
def test_rendered_texts__what_they_name__leads_to_its_page(text: str, html: str) -> None:
    assert re.sub(' rel="[^"]+"', "", linked(text)) == f"<p>{html}</p>\n"


def test_rendered_texts__names_in_links_to_elsewhere_and_in_blocks_of_code__are_left_alone() -> None:
    html = linked(f"[`ann`](https://e.example/)\n\n```\n{_REQUEST}\n```")

    assert "/admin/" not in html and 'target="_blank"' in html


@given(
    st.lists(
        st.one_of(st.sampled_from([*_PIECES, "`ann`", _REQUEST, "/admin/requests/1/"]), st.text(max_size=5)),
        max_size=40,
    ).map("".join)
)
def test_rendered_texts__whatever_is_written__leads_into_the_service_by_its_own_links_only(text: str) -> None:
    for tag, attributes in _Elements(linked(text)).found:
        if tag == "a" and not re.match("https?://", attributes.get("href") or ""):
            assert attributes["href"] in _LINKS.values() and "target" not in attributes
