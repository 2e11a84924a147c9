from __future__ import annotations


class BackupError(Exception):
    """A backup cannot be made or restored. The message is one sentence for the operator."""
