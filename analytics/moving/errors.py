from __future__ import annotations


class CannotMoveError(Exception):
    pass
