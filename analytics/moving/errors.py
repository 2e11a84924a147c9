from __future__ import annotations


class CannotMoveError(Exception):
    """The rows cannot be moved, or are not all there; the message says why, and what to do."""
