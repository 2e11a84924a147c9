from __future__ import annotations

from django.db import DatabaseError, InterfaceError

from core.encryption.canary import WrongKeysError, check_canary


def main() -> None:
    try:
        check_canary()
    except WrongKeysError as error:
        raise SystemExit(str(error)) from None
    except (DatabaseError, InterfaceError) as error:
        # The message of the driver may name the user and the host, but never the password.
        raise SystemExit(f"The SQL database does not answer ({type(error).__name__}).") from None
