"""`python -m benchmarks.scaling` says what a rate of requests takes, in hosts, shards, replicas and dollars. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.scaling import figures, tables
from benchmarks.scaling.inputs import Mix, Shape
from benchmarks.targets.base import ROOT

PAGE = ROOT / "docs" / "scaling.md"

T = TypeVar("T", Mix, Shape)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument(
        "--prices", type=Path, default=figures.PRICES, help="a file like benchmarks/scaling/prices.toml"
    )
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/scaling.md")
    parser.add_argument(
        "--rate", type=float, action="append", help="requests a second in place of the page's; repeatable"
    )
    _add(parser, "the requests", Mix)
    _add(parser, "the servers", Shape)
    options = parser.parse_args(arguments)
    try:
        mix, shape = _given(options, Mix), _given(options, Shape)
        steps = [(rate, False) for rate in options.rate or ()] or tables.STEPS
        printed = tables.page(figures.measured(), figures.prices(options.prices), mix, shape, steps)
    except (ValueError, msgspec.ValidationError) as error:
        parser.error(str(error))
    for name, table in printed.items():
        print(f"## {name}\n\n{table}\n")
    if options.write_docs:
        write(PAGE, printed)
    return 0


def _add(parser: argparse.ArgumentParser, title: str, struct: type[Mix | Shape]) -> None:
    group, said = parser.add_argument_group(title), figures.described(struct)
    for field in msgspec.structs.fields(struct):
        name, default = field.name.replace("_", "-"), field.default
        group.add_argument(f"--{name}", type=type(default), default=default, help=f"{said[field.name]} ({default:g})")


def _given(options: argparse.Namespace, struct: type[T]) -> T:
    return struct(**{name: getattr(options, name) for name in struct.__struct_fields__})


def write(page: Path, printed: dict[str, str]) -> None:
    """Puts each table between its markers."""
    text = page.read_text(encoding="utf-8")
    for name, table in printed.items():
        place = re.compile(f"(?<=<!-- {name}: begin -->\n).*?(?=<!-- {name}: end -->)", re.DOTALL)
        if len(place.findall(text)) != 1:
            raise ValueError(f"{page.name} has no place for the table {name}")
        text = place.sub(f"{table}\n".replace("\\", r"\\"), text)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
