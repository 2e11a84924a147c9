from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError
from tqdm import tqdm

from core.errors import ApplicationError
from gateway.configuration.applying import Projects, carry_out, entries_of, plan
from gateway.configuration.document import Source
from gateway.configuration.problems import InvalidConfigurationError
from gateway.configuration.report import lines_of
from gateway.configuration.secrets import without_secrets
from gateway.configuration.sections.base import NewKeys

_UNCHANGED = "Nothing was changed."
_CHANGES_PLANNED = 2


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--plan", "--dry-run", dest="plan", action="store_true", help="only show what would change")
    parser.add_argument("--check", action="store_true", help="only show it, with exit code 2 if anything would change")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--new-keys", type=Path, metavar="FILE", help="new file, readable by you alone, for the API keys that are made"
    )


@contextmanager
def unchanged_on_failure(source: Source | None = None) -> Iterator[None]:
    try:
        yield
    except InvalidConfigurationError as error:
        told = error.told(source.place if source is not None else lambda _: "")
        raise CommandError(f"{told}\n{_UNCHANGED}") from None
    except ApplicationError as error:
        raise CommandError(f"{error.message}\n{_UNCHANGED}") from None
    except (DatabaseError, InterfaceError) as error:
        raise CommandError(f"The SQL database failed: {' '.join(str(error).split())}\n{_UNCHANGED}") from error


def apply(command: BaseCommand, name: str, source: Source, projects: Projects, options: dict[str, Any]) -> None:
    only_shows, prune = options["plan"] or options["check"], bool(options.get("prune"))
    makes_keys = only_shows or options["new_keys"] is not None
    with unchanged_on_failure(source):
        lenient = without_secrets() if only_shows else nullcontext()
        with _bar("planning", projects) as bar, source.all_told(), lenient:
            plans = plan(projects, prune=prune, makes_keys=makes_keys, done=bar.update)
        for line in lines_of(plans, can_prune="prune" in options):
            command.stdout.write(line)
        is_any = any(one.is_any for one in plans)
        if options["check"] and is_any:
            sys.exit(_CHANGES_PLANNED)
        if only_shows or not is_any:
            return
        _confirm(options)
        with _bar("applying", projects) as bar:
            keys = _keys_file(options["new_keys"])
            carry_out(plans, projects, prune=prune, new_keys=keys, command=name, done=bar.update)
    command.stdout.write("Done.")


def _confirm(options: dict[str, Any]) -> None:
    if options["yes"]:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{_UNCHANGED} Without a terminal to ask at, --yes has it done.")
    try:
        answer = input("Do it? Only yes is taken for yes: ")
    except EOFError:
        answer = ""
    if answer.strip() != "yes":
        raise CommandError(_UNCHANGED)


@contextmanager
def _keys_file(path: Path | None) -> Iterator[NewKeys]:
    """Writes the new keys. It overwrites no file, and leaves none after a failure or without a key."""
    if path is None:
        yield NewKeys()
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _not_written(path, error) from None
    os.close(descriptor)
    with ExitStack() as failed:
        failed.callback(path.unlink)
        made = NewKeys({})
        yield made
        if made.made:
            try:
                path.write_text(f"{json.dumps(made.made, ensure_ascii=False, indent=2)}\n", encoding="utf-8")
            except OSError as error:
                raise _not_written(path, error) from None
            failed.pop_all()


def _not_written(path: Path, error: OSError) -> CommandError:
    return CommandError(f"{path} cannot be written: {error.strerror}. {_UNCHANGED}")


def _bar(what: str, projects: Projects) -> tqdm[Any]:
    return tqdm(total=2 * entries_of(projects), desc=what, unit="entry", leave=False, disable=None)
