"""A digest of all that runs depend on besides their seed: world, plan, and the code that draws and evaluates them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.rollouts.runs import Plan
from benchmarks.rollouts.worlds import World
from rollouts import evaluation

_HERE = Path(__file__).parent
_EVALUATION = Path(evaluation.__file__).parent
_STAGES = _EVALUATION.parent / "states.py"
_ASIDE = {"explanation.py", "reasons.py", "words.py", "json_form.py", "power.py", "segments.py"}
"""The modules of the evaluation that decide nothing."""
_DRAWING = ("runs", "traffic", "weather")
_DRAWING_SINGLE = (
    "cache",
    "counting",
    "crowd",
    "individual",
    "limits",
    "requests",
    "sessions",
    "signals",
    "tally",
    "values",
    "warmth",
)
_LENGTH = 16


def digest(world: World, plan: Plan) -> str:
    modules = (*_DRAWING, *(() if world.is_plain else _DRAWING_SINGLE), *(("peers",) if plan.peers else ()))
    parts = (
        _settings(world),
        _settings(plan),
        _code(tuple(_HERE / f"{name}.py" for name in modules)),
        _code((_STAGES, *(path for path in sorted(_EVALUATION.rglob("*.py")) if path.name not in _ASIDE))),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_LENGTH]


def _settings(value: Any) -> str:
    """Leaves out settings that are off, so that a new one changes nothing where it is off."""
    if not is_dataclass(value):
        return repr(value)
    named = ((field.name, getattr(value, field.name)) for field in fields(value))
    return f"{type(value).__name__}({', '.join(f'{name}={_settings(one)}' for name, one in named if one)})"


@cache
def _code(paths: tuple[Path, ...]) -> str:
    digested = hashlib.sha256()
    for path in paths:
        digested.update(ast.dump(without_words(ast.parse(path.read_text()))).encode())
    return digested.hexdigest()


def without_words(tree: ast.Module) -> ast.Module:
    """Removes docstrings and sentences, on which no figure depends."""
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = _statements(body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return tree


def _statements(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    return [
        one
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str))
    ]
