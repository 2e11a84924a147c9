"""Writes the tables of the fields' fates in `docs/providers/*.md` from the tests' observations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from integrations.registry import providers
from tests.integrations.fields.dialects import OWN_DIALECTS
from tests.integrations.fields.outcomes import Finding, Outcome, Place, findings
from tests.integrations.fields.places import MODELS, places_of
from tests.integrations.fields.silence import reason_for
from tests.integrations.fields.sources import Case, cases_of, sources

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "providers"
COMMAND = "python -m tests.integrations.fields --write"
_BEGIN = f"<!-- fields: written by `{COMMAND}` -->\n"
_END = "<!-- end of fields -->\n"
# A cell names at most three places of the upstream body; with more of them none is the field's counterpart.
MAX_PLACES = 3
_VENDORS = {
    "anthropic": "Anthropic",
    "google": "Google",
    "bedrock": "Bedrock",
    "mistral": "Mistral",
    "cohere": "Cohere",
}


def pages() -> Mapping[str, Callable[[], str]]:
    """Returns the pages with the functions that make the text between their marks."""
    return {
        "openai.md": lambda: _page([*places_of("openai")], "openai_compatible"),
        "anthropic.md": lambda: _page(_direct("anthropic"), "anthropic"),
        "google.md": lambda: _page([*_direct("google"), *_direct("google_vertex")[:1]], "google"),
        "bedrock.md": lambda: _page(_direct("bedrock"), "bedrock"),
        "mistral.md": lambda: _page(_direct("mistral"), "mistral"),
        "cohere.md": lambda: _page(_direct("cohere"), "cohere"),
        "compatible.md": _rows_page,
    }


def section_of(page: str) -> str:
    """Returns the text that the page has now."""
    return (FOLDER / page).read_text().partition(_BEGIN)[2].partition(_END)[0]


def write(page: str, text: str) -> None:
    file = FOLDER / page
    content = file.read_text()
    before, found, rest = content.partition(_BEGIN)
    if not found:
        before, rest = f"{content.rstrip()}\n\n## Every field\n\n", _END
    file.write_text(f"{before}{_BEGIN}{text}{_END}{rest.partition(_END)[2]}")


def _direct(provider: str) -> list[Place]:
    return [place for place in places_of(provider) if not place.crosses_vendor]


def _page(places: list[Place], provider: str) -> str:
    parts = [_table(["Field of OpenAI's", *map(_heading, places)], _rows(places))]
    own = [source for source in OWN_DIALECTS.get(provider, ()) if source in _VENDORS]
    others = [source for source in sources() if source in _VENDORS and source not in own]
    for source in own:
        parts.append(f"What {_VENDORS[source]}'s own SDK has beside these:\n\n" + _summary(source, places[0]))
    if provider in OWN_DIALECTS:
        rows = ([_VENDORS[source], _in_short(source, places[0])] for source in others)
        parts.append("What other vendors' SDKs have beside these:\n\n" + _table(["Vendor", "Becomes"], rows))
    return "\n".join(parts)


def _heading(place: Place) -> str:
    model = place.model.removeprefix("us.").partition("-20")[0]
    name = f"`{model}`" + (" at Vertex" if place.provider == "google_vertex" else "")
    return f"{name}, on a fallback" if place.crosses_vendor else name


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


@cache
def _cells(source: str, place: Place) -> dict[str, str]:
    """Returns the fate of each field, by value where its values differ."""
    fates: dict[str, dict[str, str]] = {}
    for case, finding in findings(cases_of(source), place):
        field, _, value = case.path.partition("=")
        fates.setdefault(field, {})[value] = _words(case, finding, place)
    return {field: _merged(values) for field, values in fates.items()}


def _words(case: Case, finding: Finding, place: Place) -> str:
    becomes = _places(case.path, finding)
    match finding.outcome:
        case Outcome.FORWARDED:
            return f"itself, {becomes}" if becomes else "itself"
        case Outcome.TRANSLATED:
            return becomes or "taken"
        case Outcome.NAMED:
            return f"{becomes}, named" if becomes else "dropped, named"
        case Outcome.SILENT:
            # A fault has no reason here; `test_fields.py` fails for it.
            return "nothing to do" if reason_for(case, place) else "SILENTLY DROPPED"
        case outcome:
            return "refused" if outcome is not Outcome.BROKEN else "BROKEN"


def _places(path: str, finding: Finding) -> str:
    """Returns the places at which the upstream request differs, besides the field's own name. The places that every
    message, and every call with its result, adds are left out."""
    in_message = path.startswith("messages") and ("." not in path or "tool_calls" in path)
    places = [one for one in finding.becomes if not (in_message and one.startswith(("messages", "tools")))]
    if finding.outcome is Outcome.FORWARDED:
        own = re.sub(r"\[[^\]]*\]", "", path.partition("=")[0]).rpartition(".")[2]
        places = [one for one in places if own not in re.split(r"[\[\]. ()]+", one)]
    more = " …" if len(places) > MAX_PLACES else ""
    return ", ".join(f"`{one}`" for one in places[:MAX_PLACES]) + more


def _merged(values: Mapping[str, str]) -> str:
    by_words: dict[str, list[str]] = {}
    for value, words in values.items():
        by_words.setdefault(words, []).append(value)
    if len(by_words) == 1:
        return next(iter(by_words))
    return "; ".join(
        f"{', '.join(f'`{value}`' for value in same if value)}: {words}" if any(same) else words
        for words, same in by_words.items()
    )


def _rows(places: list[Place]) -> list[list[str]]:
    """Returns a row for each field of OpenAI's, except fields with the same fate as the object that contains them."""
    columns = [_cells("openai", place) for place in places]
    rows: dict[str, list[str]] = {}
    for field in dict.fromkeys(field for column in columns for field in column):
        outer = _outer(field, rows)
        cells = [column.get(field) or (rows[outer][number] if outer else "") for number, column in enumerate(columns)]
        if not outer or cells != rows[outer]:
            rows[field] = cells
    readable = [(f"`{_readable(field)}`", *cells) for field, cells in rows.items()]
    return [list(row) for row in dict.fromkeys(readable)]


def _outer(field: str, rows: Mapping[str, list[str]]) -> str:
    return max((one for one in rows if field.startswith((f"{one}.", f"{one}["))), key=len, default="")


def _readable(field: str) -> str:
    return re.sub(r"\[[A-Z]\w*\]", "[object]", re.sub(r"\[(list|words|string)\]", "", field))


def _summary(source: str, place: Place) -> str:
    """Returns the names of each outcome: top-level fields, content parts and tools."""
    rows = ([words, ", ".join(f"`{name}`" for name in names)] for words, names in _grouped(source, place).items())
    return _table(["Becomes", "Fields"], rows)


def _in_short(source: str, place: Place) -> str:
    grouped = _grouped(source, place)
    return "; ".join(f"{words}: {', '.join(f'`{name}`' for name in names)}" for words, names in grouped.items())


def _grouped(source: str, place: Place) -> dict[str, list[str]]:
    ours = {_readable(case.path.partition("=")[0]) for case in cases_of("openai")}
    grouped: dict[str, list[str]] = {}
    for field, words in _cells(source, place).items():
        name = _readable(field)
        is_top = "." not in name.removeprefix("messages[user].").removeprefix("content.")
        if is_top and name not in ours and not name.startswith("messages[assistant]"):
            outcome = words if words in ("itself", "refused", "dropped, named", "nothing to do") else "translated"
            grouped.setdefault(outcome, []).append(name.removeprefix("messages[user]."))
    return {words: list(dict.fromkeys(names)) for words, names in sorted(grouped.items())}


def _rows_page() -> str:
    """Returns the page about the rows of OpenAI's dialect, which lists only fields that are not sent unchanged."""
    rows = [provider for provider in providers() if provider not in OWN_DIALECTS and provider not in MODELS]
    cells = {provider: _cells("openai", _direct(provider)[0]) for provider in rows}
    lines: dict[str, str] = {}
    for field in dict.fromkeys(field for fates in cells.values() for field in fates):
        by_words: dict[str, list[str]] = {}
        for provider in rows:
            words = cells[provider].get(field, "dropped, named")
            if words != "itself":
                by_words.setdefault(words, []).append(provider)
        fates = "; ".join(f"{words}: {_counted(names, rows)}" for words, names in by_words.items())
        outer = max((one for one in lines if field.startswith((f"{one}.", f"{one}["))), key=len, default="")
        if fates and (not outer or lines[outer] != fates):
            lines[field] = fates
    return _table(
        ["Field of OpenAI's", "Becomes"], ([f"`{_readable(field)}`", fates] for field, fates in lines.items())
    )


def _counted(names: list[str], rows: list[str]) -> str:
    rest = [name for name in rows if name not in names]
    if len(rest) < len(names):
        return f"everywhere but {', '.join(rest)}" if rest else "everywhere"
    return ", ".join(names)
