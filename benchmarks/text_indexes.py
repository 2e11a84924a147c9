"""`python -m benchmarks.text_indexes` measures the text indexes of words and their vocabulary beside the index of every
four letters that they replaced, on the same texts. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import repeat
from pathlib import Path
from string import Template
from typing import Any
from uuid import UUID

from benchmarks import payloads
from benchmarks import report as machine_report
from benchmarks.analytics_store import Store, store, wait_for_merges
from benchmarks.django_setup import positive_number, set_up_django

_PROJECT = UUID("00000000-0000-4000-8000-000000000001")
_COLUMNS = ("project_id", "ts", "request_id", "session_id", "prompt", "completion", "drop_date")
_BATCH_ROWS = 10_000
_PROMPT, _COMPLETION = 800, 1_200
_MICROSECONDS = 1e6
_NO_INDEX, _LETTERS, _WORDS = "payloads_plain", "payloads_letters", "payloads_words"

# The vocabulary of the product, filled from the table with the indexes of words.
_VOCABULARY = """
CREATE MATERIALIZED VIEW vocabulary_of_words_mv TO vocabulary AS
SELECT project_id, $word AS word, toMonday(expires) AS week, sum(texts) AS occurrences, max(expires) AS drop_date
FROM (
    SELECT project_id, expires, texts, $words AS words
    FROM (
        SELECT project_id, drop_date AS expires, prompt, completion, count() AS texts FROM payloads_words
        GROUP BY project_id, expires, prompt, completion
    )
) ARRAY JOIN words AS any_word
GROUP BY project_id, word, week
"""

_Kind = Callable[[random.Random, str], str]
_Texts = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    insert: float
    merge: float
    size: float


@dataclass(frozen=True, slots=True)
class Searches:
    kind: str
    letters: float
    words: float
    plain: float
    worst_words: float
    different: int


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # A SIGTERM to the benchmark also ends its engine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with store(options.data) as measured:
        # A batch takes longer than a query may where the machine is busy.
        set_up_django(measured, CLICKHOUSE_QUERY_SECONDS="600")
        found = _measure(options, measured)
    return 1 if any(one.different for one in found) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text_indexes", description=__doc__)
    parser.add_argument("--rows", type=positive_number, default=100_000, help="requests with texts (default 100,000)")
    parser.add_argument("--fragments", type=positive_number, default=12, help="of each kind (default 12)")
    parser.add_argument("--texts", type=Path, help="folder of .txt files, a paragraph a line; else the product's own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="folder of the store; kept afterwards")
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, measured: Store) -> list[Searches]:
    from analytics.clickhouse.migrator import migrate

    migrate()
    chance = random.Random(options.seed)
    _print_costs(measured, list(_batches(options.rows, chance, _equal_texts())), "all alike")
    batches = list(_batches(options.rows, chance, _own_texts(chance, _paragraphs(options.texts))))
    # The searches find the texts of this call, which is the last.
    _print_costs(measured, batches, "none alike")
    texts = [row[4] + "\n" + row[5] for rows in batches for row in rows]
    found = []
    print("| Fragment | letters ms | words ms | no index ms | words by letters | slowest, words | counts that differ |")
    print("|---|---|---|---|---|---|---|")
    for name, kind in _KINDS.items():
        fragments = _fragments(kind, chance, texts, options.fragments)
        if not fragments:
            print(f"| {name} | in no text | | | | | |")
            continue
        found.append(_search(measured, name, fragments))
        print(_line(found[-1]), flush=True)
    print("", machine_report.machine(), sep="\n")
    return found


def _paragraphs(folder: Path | None) -> list[list[str]]:
    if folder is None:
        from benchmarks.record_entries import sentences

        return [sentences()]
    files = [path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("*.txt"))]
    return [[line for line in lines if line.strip()] for lines in files]


def _own_texts(chance: random.Random, files: Sequence[list[str]]) -> Iterator[_Texts]:
    sizes = [len(lines) for lines in files]
    while True:
        lines = chance.choices(files, weights=sizes)[0]
        prompt = f"user: {_text(chance, lines, _PROMPT)} order {chance.randrange(10**9)} {chance.getrandbits(64):016x}"
        yield prompt, _text(chance, lines, _COMPLETION)


def _equal_texts() -> Iterator[_Texts]:
    from analytics.shipper.texts import completion_text, prompt_text

    prompt = prompt_text(payloads.request_body(payloads.MODEL)).decode()
    return repeat((prompt, completion_text(payloads.answer()).decode()))


def _batches(rows: int, chance: random.Random, texts: Iterator[_Texts]) -> Iterator[list[tuple[Any, ...]]]:
    start = datetime.now(UTC) - timedelta(milliseconds=rows)
    expiry = (start + timedelta(days=30)).date()
    made = []
    for number in range(rows):
        prompt, completion = next(texts)
        request = UUID(int=chance.getrandbits(128))
        when = start + timedelta(milliseconds=number)
        made.append((_PROJECT, when, request, "", prompt, completion, expiry))
        if len(made) == _BATCH_ROWS:
            yield made
            made = []
    if made:
        yield made


def _text(chance: random.Random, lines: Sequence[str], length: int) -> str:
    parts, size = list[str](), 0
    while size < length:
        parts.append(chance.choice(lines))
        size += len(parts[-1]) + 1
    return " ".join(parts)[:length]


def _print_costs(measured: Store, batches: Sequence[Sequence[tuple[Any, ...]]], alike: str) -> None:
    sizes = [len(row[4]) + len(row[5]) for rows in batches for row in rows]
    costs = {name: _cost(measured, name, batches, len(sizes), alike) for name in (_NO_INDEX, _LETTERS, _WORDS)}
    print(f"{len(sizes):,} rows of {statistics.mean(sizes):,.0f} characters, {alike}", "", sep="\n")
    print(*_cost_lines(costs), "", sep="\n", flush=True)


def _cost(measured: Store, table: str, batches: Sequence[Sequence[tuple[Any, ...]]], rows: int, name: str) -> Cost:
    """Fills a table like `payloads` with other indexes, and merges it into one part; with it the vocabulary. `name`
    tells apart the batches of several calls."""
    from analytics.clickhouse import client, text_index
    from benchmarks.text_index_of_letters import INDEXES

    stored = [table, "vocabulary"] if table == _WORDS else [table]
    client.execute(f"DROP TABLE IF EXISTS {table} SYNC")
    client.execute(f"CREATE TABLE {table} AS payloads")
    for index in (*sorted(text_index.NAMES), "i_request"):
        client.execute(f"ALTER TABLE {table} DROP INDEX {index}")
    indexes = {_NO_INDEX: {}, _LETTERS: INDEXES, _WORDS: text_index.INDEXES}[table]
    for index, clause in indexes.items():
        client.execute(f"ALTER TABLE {table} ADD INDEX {index} {clause}")
    if table == _WORDS:
        client.execute("TRUNCATE TABLE vocabulary")
        client.execute("DROP TABLE IF EXISTS vocabulary_of_words_mv SYNC")
        client.execute(Template(_VOCABULARY).substitute(words=text_index.WORDS, word=text_index.WORD))
    wait_for_merges()
    before = measured.cpu_seconds()
    for number, batch in enumerate(batches):
        client.insert(table, _COLUMNS, batch, token=f"{table}.{name}.{number}")
    inserted = measured.cpu_seconds()
    for one in stored:
        client.execute(f"OPTIMIZE TABLE {one} FINAL")
    wait_for_merges()
    merged = measured.cpu_seconds()
    [(size,)] = client.execute(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()"
        " AND table IN {tables:Array(String)}",
        {"tables": stored},
    )
    return Cost((inserted - before) / rows * _MICROSECONDS, (merged - inserted) / rows * _MICROSECONDS, size / rows)


def _cost_lines(costs: dict[str, Cost]) -> Iterator[str]:
    yield "| Indexes | insert µs a row | merges µs a row | bytes on disk a row |"
    yield "|---|---|---|---|"
    for name, cost in costs.items():
        yield f"| {name} | {cost.insert:.0f} | {cost.merge:.0f} | {cost.size:,.0f} |"
    plain, letters, words = (costs[name] for name in (_NO_INDEX, _LETTERS, _WORDS))

    def ratio(of: Callable[[Cost], float]) -> str:
        above = of(letters) - of(plain)
        return f"{(of(words) - of(plain)) / above:.2f}" if above > 0 else "-"

    yield (
        f"| words by letters, without what the texts cost | {ratio(lambda one: one.insert)} |"
        f" {ratio(lambda one: one.merge)} | {ratio(lambda one: one.size)} |"
    )


def _fragments(kind: _Kind, chance: random.Random, texts: Sequence[str], count: int) -> list[str]:
    found: list[str] = []
    for _ in range(count * 50):
        fragment = kind(chance, chance.choice(texts))
        if fragment and len(found) < count and "\n" not in fragment:
            found.append(fragment)
    return found


def _search(measured: Store, kind: str, fragments: Sequence[str]) -> Searches:
    from analytics.queries.search import _fold

    times: dict[str, list[float]] = {_LETTERS: [], _WORDS: [], _NO_INDEX: []}
    different = 0
    for fragment in fragments:
        [term] = _fold([fragment])
        counts = set()
        for table, measured_times in times.items():
            page = partial(_ask, table, term, "ts, request_id", " ORDER BY ts DESC, request_id DESC LIMIT 21")
            measured_times.append(_cpu(measured, page, at_least=0.04 if table != _NO_INDEX else 0.0))
            counts.update(_ask(table, term, "count()") or [(0,)])
        different += len(counts) > 1
    letters, words, plain = (statistics.median(times[table]) for table in (_LETTERS, _WORDS, _NO_INDEX))
    return Searches(kind, letters, words, plain, max(times[_WORDS]), different)


def _ask(table: str, term: str, what: str, end: str = "") -> list[tuple[Any, ...]]:
    from analytics.clickhouse import client
    from analytics.clickhouse.text_index import TEXT
    from analytics.queries.search import _INDEX_FIRST, _indexed, _look_up
    from analytics.queries.search_terms import tokens
    from benchmarks.text_index_of_letters import narrowed

    narrow, params = narrowed(term) if table == _LETTERS else ("", {})
    if table == _WORDS:
        found_by = tokens([term])
        vocabulary = _look_up(_PROJECT, found_by.parts)
        if not vocabulary.has_all:
            return []
        narrow, params = _indexed(found_by, vocabulary)
    sql = (
        f"SELECT {what} FROM {table} PREWHERE project_id = {{project:UUID}}{narrow}"  # noqa: S608 - of this benchmark
        f" WHERE position({TEXT}, {{term:String}}) > 0{end}"
    )
    return client.execute(sql, {"project": _PROJECT, "term": term, **params}, _INDEX_FIRST)


def _cpu(measured: Store, ask: Callable[[], object], *, at_least: float) -> float:
    """Returns the engine's CPU in ms. The kernel counts it in steps of 10 ms, so calls repeat for `at_least` seconds;
    the first call, which may fill caches, does not count then."""
    if at_least:
        ask()
    before, calls, started = measured.cpu_seconds(), 0, time.monotonic()
    while not calls or (measured.cpu_seconds() - before < at_least and time.monotonic() - started < 1):
        ask()
        calls += 1
    return (measured.cpu_seconds() - before) / calls * 1e3


def _line(one: Searches) -> str:
    ratio = f"{one.words / one.letters:.2f}" if one.letters else "-"
    times = " | ".join(f"{value:.0f}" for value in (one.letters, one.words, one.plain))
    return f"| {one.kind} | {times} | {ratio} | {one.worst_words:.0f} | {one.different} |"


def _word(chance: random.Random, text: str) -> str:
    return chance.choice([one for one in text.split() if one.isalpha() and len(one) > 3 and not _unspaced(one)] or [""])


def _part(chance: random.Random, text: str, length: int) -> str:
    word = _word(chance, text)
    start = chance.randrange(1, max(len(word) - length, 2))
    return word[start : start + length] if len(word) > length + 1 else ""


def _cut(chance: random.Random, text: str, length: int) -> str:
    start = chance.randrange(max(len(text) - length, 1))
    return text[start : start + length].strip()


def _phrase(chance: random.Random, text: str) -> str:
    words = text.split()
    start = chance.randrange(max(len(words) - 3, 1))
    found = " ".join(words[start : start + 3])
    return "" if _unspaced(found) else found


def _ends(chance: random.Random, text: str) -> str:
    words = text.split()
    place = chance.randrange(max(len(words) - 1, 1))
    pair = words[place : place + 2]
    return (
        f"{pair[0][-1]} {pair[1][:3]}" if len(pair) == 2 and len(pair[1]) > 3 and not _unspaced("".join(pair)) else ""
    )


def _in_none(chance: random.Random, text: str) -> str:
    word = _word(chance, text)
    return f"{word}{chance.choice('qxzj')}{chance.choice('qxzj')}v" if word else ""


def _ideographs(chance: random.Random, text: str) -> str:
    length = chance.randrange(2, 6)
    found = _cut(chance, text, length)
    return found if len(found) == length and all(map(_unspaced, found)) else ""


def _unspaced(text: str) -> bool:
    from analytics.queries.search_terms import _is_unspaced

    return any(map(_is_unspaced, text))


_KINDS: dict[str, _Kind] = {
    "a word": _word,
    "part of a word, 5 letters": lambda chance, text: _part(chance, text, 5),
    "part of a word, 4 letters": lambda chance, text: _part(chance, text, 4),
    "part of a word, 3 letters": lambda chance, text: _part(chance, text, 3),
    "number of one request": lambda chance, text: text.split("\n")[0].rsplit(" ", 1)[1],
    "part of that": lambda chance, text: text.split("\n")[0].rsplit(" ", 1)[1][3:9],
    "three words": _phrase,
    "16 characters, cut anywhere": lambda chance, text: _cut(chance, text, 16),
    "30 characters, cut anywhere": lambda chance, text: _cut(chance, text, 30),
    "end of a word and begin of the next": _ends,
    "two to five ideographs": _ideographs,
    "a word that is nowhere": _in_none,
}

if __name__ == "__main__":
    sys.exit(main())
