"""Finds by name what an experiment is made of."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prompt_gateway_client.command.outcome import NotRunError
from prompt_gateway_client.command.service import Service

_FLAGS = {"required": ("required", True), "optional": ("required", False), "must-pass": ("must_pass", True)}
_MIN_RATE = "min-rate="


@dataclass(frozen=True)
class NamedEvaluator:
    """An evaluator as it is named in the command: `NAME[@VERSION]` and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    id: str
    number: int


def named_evaluator(text: str) -> NamedEvaluator:
    """Reads `NAME[@VERSION][:OPTION]…`. What is no option belongs to the name, which may have colons."""
    options: dict[str, Any] = {}
    name = text
    while True:
        head, colon, option = name.rpartition(":")
        if colon and option in _FLAGS:
            key, value = _FLAGS[option]
            options[key] = value
        elif colon and option.startswith(_MIN_RATE):
            options["min_rate"] = _rate(option.removeprefix(_MIN_RATE))
        else:
            break
        name = head
    if not name:
        raise ArgumentTypeError(f"{text!r} names no evaluator")
    return NamedEvaluator(name, options)


def find_dataset(service: Service, name: str) -> dict[str, Any] | None:
    return next((entry for entry in service.listed("datasets") if entry["name"] == name), None)


def require_dataset(service: Service, name: str) -> dict[str, Any]:
    found = find_dataset(service, name)
    if found is None:
        raise _unknown(f"data set named {name!r}")
    return found


def require_config(service: Service, name: str) -> dict[str, Any]:
    found = next(service.listed("prompts/configs", name=name), None)
    if found is None:
        raise _unknown(f"prompt config named {name!r}")
    return found


def require_version(service: Service, config: dict[str, Any], number: int | None) -> Version:
    """Returns the version of this number, or the active one."""
    if number is None:
        if config["active_version_id"] is None:
            raise NotRunError("unknown_name", f"The prompt config {config['name']!r} has no active version.")
        return Version(config["active_version_id"], config["active_version_number"])
    path = f"prompts/configs/{config['id']}/versions"
    found = next(service.listed(path, version_number=str(number)), None)
    if found is None:
        raise _unknown(f"version {number} of the prompt config {config['name']!r}")
    return Version(found["id"], number)


def push_version(service: Service, config: dict[str, Any], file: str) -> tuple[Version, bool]:
    """Returns the version that has the file's content, and whether it was added just now."""
    try:
        text = Path(file).read_bytes().decode()
    except OSError as error:
        raise NotRunError("unreadable_file", f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise NotRunError("unreadable_file", f"{file} is not text in UTF-8.") from error
    path = f"prompts/configs/{config['id']}/versions/from-file"
    answer = service.call("POST", path, body={"name": file, "text": text})
    return Version(answer.body["id"], answer.body["version_number"]), answer.status == 201


def require_evaluators(service: Service, named: Sequence[NamedEvaluator]) -> list[dict[str, Any]]:
    """Returns the evaluators as the body of an experiment has them."""
    there = {entry["name"]: entry for entry in service.listed("evaluators")}
    return [_evaluator(there, one) for one in named]


def _evaluator(there: dict[str, dict[str, Any]], named: NamedEvaluator) -> dict[str, Any]:
    if named.name in there:
        return {"evaluator_id": there[named.name]["id"], **named.options}
    name, at, number = named.name.rpartition("@")
    if not at or name not in there or not (number.isascii() and number.isdigit()):
        raise _unknown(f"evaluator named {named.name!r}")
    if int(number) not in {version["number"] for version in there[name]["versions"]}:
        raise _unknown(f"version {number} of the evaluator {name!r}")
    return {"evaluator_id": there[name]["id"], "version": int(number), **named.options}


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1
    if not 0 <= rate <= 1:
        raise ArgumentTypeError(f"{_MIN_RATE}{text} is no rate between 0 and 1")
    return rate


def _unknown(what: str) -> NotRunError:
    return NotRunError("unknown_name", f"The project has no {what}.")
