from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analytics.shipper.dead_letters import DeadLetters, Letter


class Command(BaseCommand):
    help = "List, show, send again or drop the records that the request log refused, on the host that keeps them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["list", "show", "retry", "drop"])
        parser.add_argument("names", nargs="*", metavar="NAME", help="as `list` shows them")
        parser.add_argument("--all", action="store_true", help="all there are")
        parser.add_argument("--content", action="store_true", help="with `show`: the texts of request and answer too")
        parser.add_argument("--spool", type=Path, default=settings.SPOOL_DIR, help="a spool other than SPOOL_DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        dead, action = DeadLetters(options["spool"]), options["action"]
        letters = dead.letters()
        if action == "list":
            for letter in letters:
                self.stdout.write(_line(letter))
            self.stdout.write(f"{len(letters)} dead letters in {options['spool']}")
            return
        for letter in _chosen(letters, options["names"], every=options["all"]):
            if action == "show":
                self.stdout.write(_shown(letter, with_content=options["content"]))
            elif action == "drop":
                dead.drop(letter)
                self.stdout.write(f"{letter.name}: dropped")
            elif letter.frame is None:
                self.stderr.write(f"{letter.name}: stays, since damaged bytes are no record that could be sent again")
            else:
                dead.send_again(letter)
                self.stdout.write(f"{letter.name}: back in the spool; the shipper sends it next")


def _chosen(letters: list[Letter], names: list[str], *, every: bool) -> list[Letter]:
    if bool(names) == every:
        raise CommandError("Give the names of dead letters, or --all.")
    by_name = {letter.name: letter for letter in letters}
    if unknown := [name for name in names if name not in by_name]:
        raise CommandError(f"There is no dead letter {unknown[0]}: `manage.py dead_letters list` shows what there is.")
    return letters if every else [by_name[name] for name in names]


def _line(letter: Letter) -> str:
    kept = datetime.fromtimestamp(letter.path.stat().st_mtime, UTC)
    record = _record(letter)
    what = f"request {record.get('request_id')} of project {record.get('project_id')}" if record else "damaged bytes"
    reason = " ".join(letter.reason.split())
    return f"{letter.name}  {kept:%Y-%m-%d %H:%M:%S}Z  {letter.path.stat().st_size} bytes  {what}: {reason}"


def _record(letter: Letter) -> dict[str, Any]:
    try:
        return {} if letter.frame is None else dict(msgspec.json.decode(letter.frame.meta))
    except (ValueError, TypeError):
        return {}


def _shown(letter: Letter, *, with_content: bool) -> str:
    frame, lines = letter.frame, [_line(letter)]
    if frame is not None:
        lines.append(msgspec.json.format(frame.meta, indent=2).decode())
        parts = {"request": frame.request, "answer": frame.response}
        for name, content in parts.items():
            text = content.decode("utf-8", "replace") if with_content else f"{len(content)} bytes, see --content"
            lines.append(f"{name}: {text}")
    return "\n".join(lines)
