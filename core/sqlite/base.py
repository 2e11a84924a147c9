from __future__ import annotations

import os
from typing import Any

from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that counts as usable only while its file is the one that stands at its path.

    An open connection would go on reading and writing a file that was removed or replaced, as by a restored backup.
    Django calls `is_usable` when it reuses a connection.
    """

    _file: tuple[int, int] | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        self._file = self._file_there()
        return connection

    def is_usable(self) -> bool:
        return self._file == self._file_there()

    def _file_there(self) -> tuple[int, int] | None:
        """Returns device and inode; None where there is no file, as for a database in memory."""
        try:
            found = os.stat(self.settings_dict["NAME"])
        except OSError:
            return None
        return found.st_dev, found.st_ino
