"""`python -m benchmarks.counts` counts what a request, a chunk of a stream and 1,000 records cost, and compares with
the bounds of bounds.toml. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import uvloop

from benchmarks.counts import bounds, callgrind
from benchmarks.counts.kernel import NotCountedError
from benchmarks.counts.measure import Counting, Figures, merged
from benchmarks.counts.service import Counted, ExtraWorker
from benchmarks.counts.traffic import Steps, start_provider

# The work of timers, of the collector and of other processes only adds to a count, and not to each run's alike.
_MAX_MORE_RUNS = 3


async def count(workspace: Path, stack: ExitStack, repeat: int, *, with_instructions: bool = True) -> list[Figures]:
    steps = Steps()
    mock_port = await start_provider(steps)
    service = await asyncio.to_thread(Counted, workspace, stack)
    # The provider in this process has to answer while the service starts.
    plain = await asyncio.to_thread(service.start, mock_port)
    limited = await asyncio.to_thread(service.start_limited, mock_port, plain)
    surfaces = await asyncio.to_thread(service.start_surfaces, mock_port, plain)
    prompts = await asyncio.to_thread(service.start_prompts, mock_port, plain)
    probed = service.start_worker("probed")
    left_out = NotCountedError("left out by --without-instructions")
    valgrind = _under_valgrind(service) if with_instructions else left_out
    await asyncio.to_thread(probed.wait_ready)
    _set_up_django(service)
    counting = Counting(service, steps, plain, limited, surfaces, prompts, probed, valgrind)
    accepted, parts = bounds.load(), [await counting.run() for _ in range(repeat)]

    def is_broken(part: Figures) -> bool:
        # The least of all runs decides, of the counts that this part has.
        least = _least([merged(run) for run in parts])
        own = {workload: {name: least[workload][name] for name in found} for workload, found in part.counted.items()}
        return bool(accepted.broken(own))

    while any(map(is_broken, parts[-1])) and len(parts) < repeat + _MAX_MORE_RUNS:
        parts.append(await counting.run(parts[-1], is_broken))
    return [merged(run) for run in parts]


def _under_valgrind(service: Counted) -> ExtraWorker | NotCountedError:
    try:
        return service.start_worker("valgrind", under=callgrind.command)
    except NotCountedError as error:
        return error


def _set_up_django(service: Counted) -> None:
    os.environ.update(service.environment)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.base"
    import django

    django.setup()


def lines(
    runs: Sequence[Figures], accepted: bounds.Bounds, counted: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    yield "| Per | Count | counted | of the runs | bound |"
    yield "|---|---|---|---|---|"
    for workload, figures in counted.items():
        for name, value in figures.items():
            bound = accepted.of(workload, name)
            each = [run.counted[workload][name] for run in runs]
            shown = f"{bound.bound:,g}" if bound is not None else "none"
            yield f"| {workload} | {name} | {value:,.2f} | {min(each):,.2f} to {max(each):,.2f} | {shown} |"
    for workload, name in accepted.uncounted(counted):
        reason = runs[-1].missing.get(name, "no count of this name")
        yield f"| {workload} | {name} | NOT COUNTED: {reason} | | not compared |"
    yield ""
    yield from (f"{subject}: {detail}" for subject, detail in runs[-1].details.items())


def _least(runs: Sequence[Figures]) -> dict[str, dict[str, float]]:
    return {
        workload: {name: min(run.counted[workload][name] for run in runs) for name in figures}
        for workload, figures in runs[0].counted.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description=__doc__)
    parser.add_argument("--repeat", type=int, default=1, help="count so many times, and show the spread (1)")
    parser.add_argument(
        "--write-bounds", action="store_true", help="set the bounds to what is counted, plus their slack"
    )
    parser.add_argument("--without-instructions", action="store_true", help="count calls alone, in a third of the time")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="counts-") as folder, ExitStack() as stack:
        counting = count(Path(folder), stack, options.repeat, with_instructions=not options.without_instructions)
        runs = uvloop.run(counting)
    counted = _least(runs)
    if options.write_bounds:
        bounds.write(counted)
    accepted = bounds.load()
    print("\n".join(lines(runs, accepted, counted)))
    print(f"CPython {platform.python_version()}; {time.monotonic() - began:.0f} seconds.")
    broken = accepted.broken(counted)
    print("\n".join(broken), file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
