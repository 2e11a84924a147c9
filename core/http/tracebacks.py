from __future__ import annotations

import traceback


def class_and_place(error: BaseException) -> str:
    """Returns an exception's class and, on the lines below, the frames it passed.

    Leaves out its message, which may quote a row or a body, and so prompts or keys.
    """
    return "\n".join((type(error).__qualname__, "".join(traceback.format_tb(error.__traceback__))))
