from __future__ import annotations

from collections.abc import Iterable

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_VOID = frozenset({"br", "col", "hr", "img", "input"})


def element(name: str, *children: object, **attributes: object) -> SafeString:
    """Escapes children that are not safe strings; leaves out attributes that are None or "".

    In an attribute's name, a trailing underscore is dropped and others become hyphens: `class_`, `aria_label`.
    `viewBox` and `preserveAspectRatio` stay.
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
    return mark_safe("".join(child if isinstance(child, SafeString) else escape(str(child)) for child in children))  # noqa: S308 - escaped here


def decimals(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent(number: float) -> str:
    return f"{decimals(number)}%"


def _written(value: object) -> str:
    return decimals(value) if isinstance(value, float) else str(value)


def hidden(text: str) -> SafeString:
    return element("span", text, class_="sr")


def linked(text: str, href: str) -> SafeString:
    return element("a", text, href=href) if href else joined([text])
