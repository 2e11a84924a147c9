"""`python -m config.supervisor.precompile` imports what `serve` imports, so that an image has it compiled: on a
read-only root file system Python could not keep what it compiles."""

from __future__ import annotations

import django

from config.supervisor.fork_server import import_modules

if __name__ == "__main__":
    django.setup()
    # It imports models, which are there once the apps are.
    from config.supervisor.supervise import IMPORTED
    from core.processes.schema import import_migrations

    import_modules(IMPORTED)
    import_migrations()
