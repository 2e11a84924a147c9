"""The segments in the record of a rollout's request: facts of the request itself, whichever version answered it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.pipeline.language import language_of
from gateway.protocol.wire import ContentPart, Message
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed
from tests.gateway.managed import make_prompt
from tests.gateway.wire import body

_TEXTS = {
    "en": "Where is my order? I have been waiting for it.",
    "de": "Wo ist meine Bestellung? Ich warte schon lange darauf.",
    "fr": "Où est ma commande ? Je l'attends depuis longtemps.",
    "es": "¿Dónde está mi pedido? Lo espero desde hace mucho.",
    "ja": "注文した商品はどこですか。ずっと待っています。",
    "ar": "أين طلبي؟ أنا أنتظره منذ وقت طويل.",
}


@pytest.mark.parametrize(("code", "text"), _TEXTS.items())
def test_language__of_a_sentence__is_known(code: str, text: str) -> None:
    assert language_of([Message(role="user", content=text)]) == code


@pytest.mark.parametrize("text", ["", "  \n", "12345", "\x00", "😀😀", '{"a": 1}', "\ud800"])
def test_language__of_no_sentence__is_not_guessed(text: str) -> None:
    assert language_of([Message(role="user", content=text)]) == ""


def test_language__of_a_conversation__is_that_of_the_users_last_text() -> None:
    image, text = ContentPart(type="image_url"), ContentPart(type="text", text=_TEXTS["de"])
    messages = [
        Message(role="user", content=_TEXTS["fr"]),
        Message(role="assistant", content=_TEXTS["en"]),
        Message(role="user", content=[text, image]),
        Message(role="tool", content=_TEXTS["es"]),
    ]

    assert language_of(messages) == "de"
    assert language_of(messages[:1]) == "fr"
    assert language_of([]) == ""
    assert language_of([Message(role="user", content=[image])]) == ""


@pytest.mark.parametrize("log_content", [True, False])
def test_record__of_a_rollout__has_the_same_segments_in_both_arms(routed: Routed, log_content: bool) -> None:
    gateway, _ = routed({"log_content": log_content}, openai=[play.answer()])
    prompt = make_prompt(gateway, "Antworte kurz.", "Réponds " + "très " * 500 + "longuement.")
    prompt.roll_out(prompt.version_ids[1], 50)

    def asked(**headers: str) -> Any:
        messages = [{"role": "user", "content": _TEXTS["es"]}]
        response = gateway.post(body(model="gpt-4o", messages=messages, prompt_config="support"), headers=headers)
        return gateway.record(response)

    records = [asked(**{"x-svc-force-variant": arm}) for arm in ("baseline", "target")]

    assert [record.variant for record in records] == ["baseline", "target"]
    assert [record.language for record in records] == ["es", "es"]
    assert records[0].client_tokens == records[1].client_tokens < 100
    assert gateway.record(gateway.post(body(model="gpt-4o"))).language == ""
