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

from benchmarks.scaling import figures, on_hosts, tables
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
    on_hosts.add_options(parser)
    options = parser.parse_args(arguments)
    if refused := on_hosts.fault(options):
        parser.error(refused)
    try:
        printed = _tables(options, figures.measured())
    except (ValueError, msgspec.ValidationError) as error:
        parser.error(str(error))
    if on_hosts.asked(options):
        return _on_hosts(options)
    for name, table in printed.items():
        print(f"## {name}\n\n{table}\n")
    if options.write_docs:
        write(PAGE, printed)
    return 0


def _tables(options: argparse.Namespace, measured: figures.Measured) -> dict[str, str]:
    mix, shape = _given(options, Mix), _given(options, Shape)
    steps = [(rate, False) for rate in options.rate or ()] or tables.STEPS
    return tables.page(measured, figures.prices(options.prices), mix, shape, steps)


def _on_hosts(options: argparse.Namespace) -> int:
    try:
        found = on_hosts.run(options)
    except on_hosts.FAILURES as error:
        print(f"the hosts did not run to the end: {error}", file=sys.stderr)
        return 1
    print(found.text)
    on_hosts.write(found, options)
    if options.write_docs:
        # The page has the figures of the file, whether it was just written or not.
        write(PAGE, _tables(options, figures.measured()) | found.check)
    return 0


def _add(parser: argparse.ArgumentParser, title: str, struct: type[Mix | Shape]) -> None:
    group, said = parser.add_argument_group(title), figures.described(struct)
    for field in msgspec.structs.fields(struct):
        name, default = field.name.replace("_", "-"), field.default
        group.add_argument(f"--{name}", type=type(default), default=default, help=f"{said[field.name]} ({default:g})")


def _given(options: argparse.Namespace, struct: type[T]) -> T:
    return struct(**{name: getattr(options, name) for name in struct.__struct_fields__})


def write(page: Path, printed: dict[str, str]) -> None:
    text = page.read_text(encoding="utf-8")
    for name, table in printed.items():
        place = re.compile(f"(?<=<!-- {name}: begin -->\n).*?(?=<!-- {name}: end -->)", re.DOTALL)
        if len(place.findall(text)) != 1:
            raise ValueError(f"{page.name} has no place for the table {name}")
        text = place.sub(f"{table}\n".replace("\\", r"\\"), text)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
