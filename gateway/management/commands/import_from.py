from __future__ import annotations

import json
import os
import tomllib
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.management.requirements import require_tables
from core.models import Project
from gateway.configuration.document import Source, read_file, read_yaml
from gateway.configuration.origins import helicone, langfuse, litellm, portkey, tensorzero
from gateway.configuration.origins.remaining import Imported, Note
from gateway.configuration.problems import InvalidConfigurationError, Problem, dotted, printable
from gateway.configuration.written import as_yaml, document, referenced, settings_of
from gateway.management import configuration


class Command(BaseCommand):
    help = (
        "Read LiteLLM's config.yaml, TensorZero's tensorzero.toml, configs of Portkey, or prompts of Langfuse or "
        "Helicone into a project: what would change, and what has no counterpart, is shown first."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("origin", choices=sorted(_ORIGINS))
        parser.add_argument("file")
        parser.add_argument("--project", required=True, help="name of the project, which is made if it is not there")
        parser.add_argument("--output", type=Path, help="write a file for manage.py apply, and change nothing")
        parser.add_argument("--lossy", action="store_true", help="import prompts that lose a message, too")
        configuration.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with configuration.unchanged_on_failure():
            source = _read(options["file"], read_file(options["file"]))
        with configuration.unchanged_on_failure(source):
            imported = _ORIGINS[options["origin"]](source)
        for line in _told(imported, source):
            self.stdout.write(line)
        if not (options["lossy"] or options["plan"] or options["check"]):
            _refuse_losses(imported, source)
        name = options["project"]
        if options["output"] is not None:
            _write(options["output"], as_yaml(document({name: referenced(imported.project, name)})))
            return
        require_tables()
        projects = {name: _with_settings(name, imported.project)}
        # Places in the file that was imported are not those of the project that was made of it.
        configuration.apply(self, "import_from", Source(options["file"], None), projects, options)


def _read(name: str, content: bytes) -> Source:
    if name.endswith(".toml"):
        try:
            return Source(name, tomllib.loads(content.decode()))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidConfigurationError([Problem((), f"Is no TOML: {error}.", f"{name}: ")]) from None
    if name.endswith(".json"):
        try:
            return Source(name, json.loads(content, object_pairs_hook=_unique))
        except (ValueError, RecursionError) as error:
            raise InvalidConfigurationError([Problem((), f"Is no JSON: {error}.", f"{name}: ")]) from None
    return read_yaml(name, content)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name} is there twice in one object")
        found[name] = value
    return found


def _object(source: Source) -> Mapping[str, Any]:
    if not isinstance(source.values, Mapping):
        raise InvalidConfigurationError([Problem((), "Is no object.")])
    return source.values


_ORIGINS: Mapping[str, Callable[[Source], Imported]] = {
    "litellm": lambda source: litellm.read(_object(source), os.environ),
    "tensorzero": lambda source: tensorzero.read(_object(source), Path(source.name).parent),
    "langfuse": lambda source: langfuse.read(source.values),
    "portkey": lambda source: portkey.read(source.values, os.environ),
    "helicone": lambda source: helicone.read(source.values),
}


def _told(imported: Imported, source: Source) -> list[str]:
    if not imported.notes:
        return []
    return ["Not carried over, or not as it was:", *(f"  {_line(note, source)}" for note in imported.notes), ""]


def _refuse_losses(imported: Imported, source: Source) -> None:
    lossy = [_line(note, source) for note in imported.notes if note.is_lossy]
    if lossy:
        told = "\n".join(lossy)
        raise CommandError(
            f"{told}\nThese prompts would answer differently here. Mend them in the file, or say --lossy to import them"
            " without these messages. Nothing was changed."
        )


def _line(note: Note, source: Source) -> str:
    return printable(f"{source.place(note.path)}{dotted(note.path)}: {note.text}")


def _with_settings(name: str, imported: Mapping[str, Any]) -> dict[str, Any]:
    present = settings_of(Project.objects.filter(name=name).first())
    settings = imported.get("settings", {})
    guardrails = {**present.get("guardrails", {}), **settings.get("guardrails", {})}
    merged = {**present, **settings, **({"guardrails": guardrails} if guardrails else {})}
    return {**imported, **({"settings": merged} if settings else {})}


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
