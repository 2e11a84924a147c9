"""The command line: options, exit codes, and what goes where."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import traceback
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from prompt_gateway_client.command.dataset import push
from prompt_gateway_client.command.experiment import ExperimentRun
from prompt_gateway_client.command.junit import junit
from prompt_gateway_client.command.markdown import markdown
from prompt_gateway_client.command.names import named_evaluator
from prompt_gateway_client.command.outcome import NOT_RUN, PASSED, NotRunError, Outcome, failure
from prompt_gateway_client.errors import PromptGatewayError, UnavailableError
from prompt_gateway_client.http import Http

_ANSWER_SECONDS = 30.0
_UPLOAD_SECONDS = 600.0
_HOUR = 3600.0
_USAGE_ERROR = 2
_ENVIRONMENT = {
    "url": "PROMPT_GATEWAY_URL",
    "api_key": "PROMPT_GATEWAY_API_KEY",
    "project_id": "PROMPT_GATEWAY_PROJECT_ID",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `svc`, and returns its exit code."""
    parser = ArgumentParser("svc", description="Prompt Gateway for pipelines.")
    groups = parser.add_subparsers(required=True, metavar="GROUP")
    experiments = groups.add_parser("experiments", help="experiments over data sets").add_subparsers(required=True)
    run = experiments.add_parser("run", help="compare a version of a prompt with another one")
    add_experiment_options(run)
    run.set_defaults(act=_run_experiment)
    datasets = groups.add_parser("datasets", help="data sets").add_subparsers(required=True)
    pushed = datasets.add_parser("push", help="add the lines of a file that a data set does not have")
    pushed.add_argument("file", help="JSON lines, an item each")
    pushed.add_argument("--dataset", required=True, help="name of the data set, which is made if there is none")
    _add_service_options(pushed, timeout=_UPLOAD_SECONDS)
    pushed.set_defaults(act=_push_dataset)
    return _parsed_and_done(parser, arguments)


def run_experiment(program: str, arguments: Sequence[str]) -> int:
    """Runs `svc experiments run` under another name, and returns its exit code."""
    parser = ArgumentParser(program)
    add_experiment_options(parser)
    parser.set_defaults(act=_run_experiment)
    return _parsed_and_done(parser, arguments)


def add_experiment_options(parser: ArgumentParser) -> None:
    parser.description = (
        "Compare a version of a prompt with another one over a data set. Exit code 0: passed, 1: worse, 2: undecided, "
        "3: not run. Standard output has one JSON object."
    )
    parser.add_argument("--dataset", required=True, help="name of the data set")
    parser.add_argument("--config", required=True, help="name of the prompt config")
    tried = parser.add_mutually_exclusive_group(required=True)
    tried.add_argument("--version", type=_whole, help="number of the version to try")
    tried.add_argument("--prompt-file", help="file (.yaml, .json, .md) to try, which becomes a version if it is none")
    parser.add_argument("--against", type=_active_or_whole, default=None, help="active (default), or a number")
    parser.add_argument(
        "--evaluator",
        type=named_evaluator,
        action="append",
        required=True,
        metavar="NAME[@VERSION][:required|:optional|:must-pass|:min-rate=0.9]",
        help="may be repeated; required unless it is optional",
    )
    parser.add_argument("--items", type=_whole, help="at most so many items; 400 without it")
    parser.add_argument("--repeats", type=_whole, default=1, help="answers to each item, 1 to 5")
    parser.add_argument("--margin", type=_rate, default=0.1, help="the loss of the mean score that does no harm")
    parser.add_argument("--fail-on", choices=["worse", "not-passing"], default="not-passing", help="what fails")
    parser.add_argument("--max-cost", type=_money, help="US dollars that the experiment may cost at most")
    parser.add_argument("--no-reuse", action="store_true", help="take no answers of earlier experiments")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit file")
    parser.add_argument("--markdown", metavar="FILE", help="write a comment for a pull request")
    _add_service_options(parser, timeout=_HOUR)


def _add_service_options(parser: ArgumentParser, *, timeout: float) -> None:
    helps = {"url": "address of the service", "api_key": "key with the scope manage", "project_id": "the key's project"}
    for name, variable in _ENVIRONMENT.items():
        parser.add_argument(f"--{name.replace('_', '-')}", help=f"{helps[name]}; {variable} without it")
    parser.add_argument("--timeout", type=_seconds, default=timeout, help=f"in seconds, {timeout:g} by default")


def _parsed_and_done(parser: ArgumentParser, arguments: Sequence[str] | None) -> int:
    try:
        options = parser.parse_args(arguments)
        for name, variable in _ENVIRONMENT.items():
            if not getattr(options, name):
                setattr(options, name, os.environ.get(variable, ""))
            if not getattr(options, name):
                parser.error(f"--{name.replace('_', '-')} or {variable} is needed")
        try:
            http = Http(options.url, options.api_key, options.project_id, _timeout_of(options))
        except ValueError:
            parser.error("--url has to begin with http:// or https://")
    except SystemExit as ended:
        # 2 is the exit code of an undecided experiment here.
        return NOT_RUN if ended.code == _USAGE_ERROR else PASSED
    # Pipelines are cancelled with SIGTERM: what Ctrl-C does has to happen then, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    act: Callable[[Http, Namespace], int] = options.act
    try:
        return act(http, options)
    except Exception:
        # Python's exit code of an exception is that of a verdict here.
        _note(options, traceback.format_exc())
        return NOT_RUN


def _timeout_of(options: Namespace) -> float:
    """Returns the limit of one answer: that of a file comes when all of it is stored."""
    timeout: float = options.timeout
    return min(timeout, _UPLOAD_SECONDS if options.act is _push_dataset else _ANSWER_SECONDS)


def _run_experiment(http: Http, options: Namespace) -> int:
    outcome = ExperimentRun(http, options, options.url, lambda line: _note(options, line)).run()
    texts = _texts(options, outcome)
    _print(options, outcome.as_json())
    is_written = [_is_written(options, file, text) for file, text in texts]
    return outcome.exit_code if all(is_written) else NOT_RUN


def _texts(options: Namespace, outcome: Outcome) -> list[tuple[str, str]]:
    """Returns the files and what is written to them. A report of which none can be made is the outcome's error."""
    try:
        return [(file, made(outcome)) for file, made in _files(options)]
    except Exception as error:
        _note(options, traceback.format_exc())
        outcome.error = failure(error)
        return []


def _files(options: Namespace) -> list[tuple[str, Callable[[Outcome], str]]]:
    asked = [(options.junit, junit), (options.markdown, markdown)]
    return [(file, made) for file, made in asked if file is not None]


def _is_written(options: Namespace, file: str, text: str) -> bool:
    try:
        Path(file).write_text(_without_key(options, text), encoding="utf-8")
    except OSError as error:
        _note(options, f"{file} cannot be written: {error.strerror}.")
        return False
    return True


def _push_dataset(http: Http, options: Namespace) -> int:
    try:
        _print(options, push(http, options, lambda line: _note(options, line)))
    except NotRunError as error:
        return _refused(options, error.code, str(error))
    except PromptGatewayError as error:
        code = error.code or ("unavailable" if isinstance(error, UnavailableError) else "refused")
        return _refused(options, code, str(error))
    except KeyboardInterrupt:
        return _refused(options, "interrupted", "The command was interrupted.")
    except Exception as error:
        _note(options, traceback.format_exc())
        return _refused(options, **failure(error))
    return PASSED


def _refused(options: Namespace, code: str, message: str) -> int:
    _note(options, message)
    _print(options, {"error": {"code": code, "message": message}})
    return NOT_RUN


def _print(options: Namespace, found: dict[str, Any]) -> None:
    sys.stdout.write(_without_key(options, json.dumps(found, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def _note(options: Namespace, line: str) -> None:
    sys.stderr.write(_without_key(options, line) + "\n")
    sys.stderr.flush()


def _without_key(options: Namespace, text: str) -> str:
    return text.replace(options.api_key, "[key]")


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _active_or_whole(text: str) -> int | None:
    return None if text == "active" else _whole(text)


def _rate(text: str) -> float:
    rate = _number(text)
    if not 0 <= rate <= 1:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return rate


def _seconds(text: str) -> float:
    seconds = _number(text)
    if not seconds > 0 or math.isinf(seconds):
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _money(text: str) -> str:
    """Returns the amount as it was written: it is sent as a decimal text."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount <= 0:
        raise ArgumentTypeError(f"{text!r} is no amount of US dollars")
    return text
