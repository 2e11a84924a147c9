from __future__ import annotations

from core.http.tracebacks import class_and_place

TEXT = "".join(("what a client", " wrote"))


def _fail(text: str) -> None:
    raise ValueError(text)


def test_class_and_place__of_an_error__without_its_text() -> None:
    try:
        _fail(TEXT)
    except ValueError as error:
        shown = class_and_place(error)
    assert shown.startswith("ValueError\n")
    assert "in _fail" in shown and TEXT not in shown
