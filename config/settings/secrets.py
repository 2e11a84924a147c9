"""Secrets come from the environment; otherwise they are generated once and kept in VAR_DIR, readable by their owner
only.

Beside a database server no secret is generated: other hosts would not have it, and could not read what was encrypted.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet

from config import env
from config.settings.database import DATABASES
from config.settings.paths import VAR_DIR

_HAS_SERVER = DATABASES["default"]["ENGINE"].endswith(".postgresql")


def _stored_secret(name: str, made: str) -> str:
    """Returns the content of VAR_DIR/secrets/`name`; a new file gets `made`. Safe if two processes start at once.

    Raises InvalidVariable beside a database server, where no secret is generated.
    """
    folder = VAR_DIR / "secrets"
    if _HAS_SERVER and not (folder / name).exists():
        raise env.InvalidVariable(
            f"Environment variable {name.upper()}: must be set beside a DATABASE_URL of a server, and SECRET_KEY and"
            " ENCRYPTION_KEYS be the same on all hosts and workers. To make them:"
            " python -c 'import secrets; print(secrets.token_urlsafe(48))' for SECRET_KEY, and"
            ' python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())" for'
            " ENCRYPTION_KEYS."
        )
    env.make_folder("VAR_DIR", folder)
    file = folder / name
    draft = folder / f".{name}.{os.getpid()}"
    if not file.exists():
        draft.touch(mode=0o600)
        draft.write_text(made, encoding="utf-8")
        try:
            os.link(draft, file)
        except FileExistsError:
            return _read(file)
        finally:
            draft.unlink()
    return _read(file)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


def _encryption_keys() -> list[str]:
    raw = env.secret("ENCRYPTION_KEYS") or _stored_secret("encryption_keys", Fernet.generate_key().decode())
    keys = [key.strip() for key in raw.split(",") if key.strip()]
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            raise env.InvalidVariable(
                "Environment variable ENCRYPTION_KEYS: expected Fernet keys (url-safe base64 of 32 bytes), comma apart"
            ) from None
    return keys


SECRET_KEY = env.secret("SECRET_KEY") or _stored_secret("secret_key", secrets.token_urlsafe(48))
# Former keys, whose sessions and links still hold.
SECRET_KEY_FALLBACKS = env.strings("SECRET_KEY_FALLBACKS", [])
# The first key encrypts and all keys decrypt: rotation puts a new key in front.
ENCRYPTION_KEYS = _encryption_keys()
