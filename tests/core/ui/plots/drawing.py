from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = {"br", "img", "input"}


class Drawing(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def texts_of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]

    def points(self) -> Iterator[tuple[float, float]]:
        for shape in self.all("polyline") + self.all("polygon"):
            for pair in shape["points"].split():
                x, y = pair.split(",")
                yield float(x), float(y)


def percent(text: str) -> float:
    assert text.endswith("%"), text
    return float(text[:-1])
