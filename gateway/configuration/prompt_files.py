"""Reads a prompt version from YAML, JSON, or Markdown whose front matter has the fields beside the text.

The fields are those of a configuration file (docs/configuration-files.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from core.errors import ValidationError
from gateway.configuration.document import Source, read_yaml
from gateway.configuration.problems import InvalidConfigurationError, Problem
from gateway.configuration.sections.base import checked
from prompts.content.version import VersionContent
from prompts.serializers import NewVersionSerializer

_SUFFIXES = (".yaml", ".yml", ".json", ".md")
# The first line is the fence; the fields end at the next one, and the text begins behind it.
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def read_prompt(name: str, text: str) -> VersionContent:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        problem = f"Must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}."
        raise ValidationError(f"name: {problem}", details={"name": [problem]})
    source: Source | None = None
    try:
        source = _READERS[suffix](name, text.removeprefix("\ufeff").replace("\r\n", "\n"))
        if not isinstance(source.values, Mapping):
            raise _invalid(source.place(()), "Must be an object with the fields of a version.")
        data = checked(NewVersionSerializer, source.values, ())
    except InvalidConfigurationError as error:
        lines = error.told(source.place if source else lambda _: "").splitlines()
        raise ValidationError(lines[0], details={"text": lines}) from None
    content: VersionContent = data["content"]
    return content


def _of_yaml(name: str, text: str) -> Source:
    return read_yaml(name, _encoded(name, text))


def _of_json(name: str, text: str) -> Source:
    try:
        return Source(name, json.loads(text))
    except json.JSONDecodeError as error:
        raise _invalid(f"{name}:{error.lineno}: ", f"Is no JSON: {error.msg}.") from None
    except (ValueError, RecursionError):
        raise _invalid(f"{name}: ", "Is no JSON that can be read.") from None


def _of_markdown(name: str, text: str) -> Source:
    found = _FRONT_MATTER.match(text)
    body = (text[found.end() :] if found else text).strip("\n")
    if not found:
        return Source(name, {"system_prompt": body})
    # An empty line in place of the fence keeps the numbers of the lines.
    front = read_yaml(name, _encoded(name, "\n" + found[1]))
    fields: Any = {} if front.values is None else front.values
    if not isinstance(fields, Mapping):
        raise _invalid(front.place(()), "Must be an object with the fields of a version.")
    if body and ("system_prompt" in fields or "messages" in fields):
        raise _invalid(f"{name}: ", "The text below the fields is the system_prompt: it cannot stand beside another.")
    return Source(name, {**fields, "system_prompt": body} if body else fields, front.root)


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _invalid(f"{name}: ", "Has a single surrogate.") from None


def _invalid(place: str, text: str) -> InvalidConfigurationError:
    return InvalidConfigurationError([Problem((), text, place)])


_READERS = {".yaml": _of_yaml, ".yml": _of_yaml, ".json": _of_json, ".md": _of_markdown}
