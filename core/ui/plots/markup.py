"""Elements of HTML and SVG with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_VOID = frozenset({"br", "col", "hr", "img", "input"})


def element(name: str, *children: object, **attributes: object) -> SafeString:
    """Returns an element; children that are not safe strings are escaped, attributes that are None or "" are left out.

    A trailing underscore of an attribute's name is dropped, other underscores are hyphens: `class_`, `aria_label`.
    `viewBox` and `preserveAspectRatio` are spelled as they are.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    if name in _VOID:
        return mark_safe(f"<{name}{pairs}>")  # noqa: S308 - names are constants, values are escaped above
    return mark_safe(f"<{name}{pairs}>{joined(children)}</{name}>")  # noqa: S308 - joined() escapes


def joined(children: Iterable[object]) -> SafeString:
    """Returns the children one after another, escaped unless they are safe."""
    return mark_safe("".join(child if isinstance(child, SafeString) else escape(str(child)) for child in children))  # noqa: S308 - escaped here


def decimals(number: float) -> str:
    """Returns a coordinate with at most two decimals."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent(number: float) -> str:
    return f"{decimals(number)}%"


def _written(value: object) -> str:
    return decimals(value) if isinstance(value, float) else str(value)


def hidden(text: str) -> SafeString:
    """Returns a text for screen readers alone."""
    return element("span", text, class_="sr")


def linked(text: str, href: str) -> SafeString:
    return element("a", text, href=href) if href else joined([text])
