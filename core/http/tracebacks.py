"""The part of an exception that may be logged."""

from __future__ import annotations

import traceback


def class_and_place(error: BaseException) -> str:
    """Returns the class of an exception and, on the lines below it, the frames that it passed.

    The text of an exception may quote a row or a body, and so prompts or keys: it is left out.
    """
    return "\n".join((type(error).__qualname__, "".join(traceback.format_tb(error.__traceback__))))
