from __future__ import annotations

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that counts as usable only while its server takes writes.

    After a failover behind a pooler or a fixed address, an open connection may lead to a replica: it reads stale data
    and can never write. Django calls `is_usable` when it reuses a connection; it opens a new one instead, and
    `target_session_attrs` makes libpq look for a server that writes.
    """

    def is_usable(self) -> bool:
        if self.connection is None:
            return False
        try:
            with self.connection.cursor() as cursor:
                is_read_only = cursor.execute("SHOW transaction_read_only").fetchone()[0] == "on"
        except self.Database.Error:
            return False
        if is_read_only:
            # A pool would lend the open connection again.
            self.connection.close()
        return not is_read_only
