from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from core.audit.entries import write_of_command
from core.audit.recording import CHANGED, Change
from core.audit.subjects import ENCRYPTION
from core.encryption.canary import replace_canary
from core.encryption.rotation import Rotation, rotate_all
from core.management.requirements import require_tables

_NAME = "rotate_encryption_keys"

# A row that a running worker saved meanwhile may be under an older key again, so passes repeat until one finds none.
_PASSES = 5


class Command(BaseCommand):
    help = (
        "Encrypts every stored secret anew with the first of ENCRYPTION_KEYS. Put the new key in front, restart, run "
        "this, and remove the old key when it says that nothing is left under it."
    )
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Count what is to be done and change nothing.")
        parser.add_argument(
            "--accept-loss",
            action="store_true",
            help="The keys of now are the right ones, although they read nothing: former keys are lost for good.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        if options["dry_run"]:
            self._report(rotate_all(dry_run=True), "to rotate")
            return
        if options["accept_loss"]:
            replace_canary()
            write_of_command(_NAME, [_change(None, accepted_loss=True)])
        self._rotate()

    def _rotate(self) -> None:
        rotated: Counter[str] = Counter()
        projects: Counter[UUID | None] = Counter()
        try:
            for _ in range(_PASSES):
                found = rotate_all()
                for rotation in found:
                    rotated[rotation.model] += rotation.rotated
                    projects += rotation.projects
                if not any(rotation.rotated for rotation in found):
                    break
            else:
                raise CommandError("Secrets under older keys keep appearing: is a worker running with the old keys?")
        finally:
            write_of_command(_NAME, [_change(key, rotated_secrets=count) for key, count in projects.items()])
        for rotation in found:
            rotation.rotated = rotated[rotation.model]
            rotation.current -= rotation.rotated
        self._report(found, "rotated")

    def _report(self, found: list[Rotation], done: str) -> None:
        for rotation in found:
            self.stdout.write(
                f"{rotation.model}: {rotation.rotated} {done}, {rotation.current} under the newest key already,"
                f" {len(rotation.lost)} unreadable"
            )
            for primary_key in rotation.lost:
                self.stderr.write(f"  {rotation.model} {primary_key} was encrypted with a key that is not configured.")
        if done == "rotated":
            self.stdout.write("Nothing that can be read is left under an older key.")


def _change(project_id: UUID | None, **after: int | bool) -> Change:
    whose = "installation" if project_id is None else "project"
    return Change(ENCRYPTION, str(project_id or whose), f"secrets of the {whose}", project_id, CHANGED, after=after)
