from __future__ import annotations

import json
from pathlib import Path

import pytest

from analytics.shipper.texts import completion_text, prompt_text
from analytics.traffic.catalogue import MODELS, token_prices
from analytics.traffic.texts import OWN_TEXTS, WORDS, Exchange, TextFileError, read_texts, word
from tests.recordings import SHARED_DIR

SHARED_TEXTS = SHARED_DIR / "traffic" / "prompts.jsonl"
FILES = [OWN_TEXTS, *([SHARED_TEXTS] if SHARED_TEXTS.exists() else [])]


def _body(exchange: Exchange, words: str) -> bytes:
    return f'{{"model":"m",{exchange.request_head}{words}{exchange.request_tail}'.encode()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_exchanges_are_bodies_and_the_texts_the_shipper_finds_in_them(file: Path) -> None:
    texts = read_texts(file)
    assert sum(texts.lengths) == len(texts.exchanges)
    for exchange in texts.exchanges:
        body = _body(exchange, "[Bade Fogu] ")
        assert json.loads(body)["messages"][-1]["role"] == "user"
        assert prompt_text(body).decode() == f"{exchange.prompt_head}[Bade Fogu] {exchange.prompt_tail}"
        for text, quoted in ((exchange.answer, exchange.answer_json), (exchange.begun_answer, exchange.begun_json)):
            answer = f'{{"choices":[{{"message":{{"role":"assistant","content":{quoted}}}}}]}}'
            assert completion_text(answer.encode()).decode() == text
        assert exchange.answer


def test_our_own_texts_are_many_and_speak_many_languages() -> None:
    texts = read_texts(OWN_TEXTS)
    assert len(texts.firsts) >= 60
    everything = "".join(one.prompt_tail + one.answer for one in texts.exchanges)
    for first, last in (
        ("\u4e00", "\u9fff"),
        ("\u0400", "\u04ff"),
        ("\u0600", "\u06ff"),
        ("\u3040", "\u30ff"),
        ("\uac00", "\ud7a3"),
    ):
        assert sum(first <= character <= last for character in everything) > 100


def test_turns_follow_each_other(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": [{"type": "text", "text": "c \ud800"}]},
    ]
    file.write_text(json.dumps({"messages": messages, "temperature": 0.5, "id": "x"}) + "\n\n")
    first, second = read_texts(file).exchanges
    assert first.answer == "b"
    assert json.loads(_body(first, "W ")) == {
        "model": "m", "messages": [{"role": "user", "content": "W a"}], "temperature": 0.5
    }  # fmt: skip
    content = json.loads(_body(second, "W "))["messages"][2]["content"]
    assert content == [{"type": "text", "text": "W "}, {"type": "text", "text": "c ?"}]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: not a conversation"),
        ('{"messages": []}', "line 2: not a conversation"),
        ('{"messages": [{"role": "system", "content": "x"}, 3]}', "line 2: not a conversation"),
        ("[" * 100_000, "line 2: not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "x"}]}\n' + line)
    with pytest.raises(TextFileError, match=problem):
        read_texts(file)


def test_an_empty_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(TextFileError, match="holds no conversation"):
        read_texts(empty)
    with pytest.raises(TextFileError, match="absent"):
        read_texts(tmp_path / "absent.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xe9")
    with pytest.raises(TextFileError, match="latin"):
        read_texts(tmp_path / "latin.jsonl")


def test_words_differ() -> None:
    assert len({word(rank) for rank in range(WORDS)}) == WORDS
    assert all(word(rank).isalpha() for rank in (0, 1, WORDS - 1))


def test_every_model_has_exact_prices_and_a_fallback() -> None:
    assert len(token_prices()) == len(MODELS)
    names = [model.name for model in MODELS]
    assert len(set(names)) == len(names)
    assert all(model.fallback in names and model.fallback != model.name for model in MODELS)
