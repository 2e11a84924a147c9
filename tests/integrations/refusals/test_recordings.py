"""Runs every recorded exchange through the tables: what a vendor took is accepted, and what it refused is refused. This
keeps the tables as strict as the vendors and not stricter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fakes.dialects.google import camelled
from tests.fakes.dialects.rules import anthropic, google, openai, responses
from tests.fakes.dialects.rules.table import Refused, Request, Table
from tests.recordings import OPENAI_DIALECT, Recording, recordings_of

pytestmark = pytest.mark.recordings

TABLES: Mapping[tuple[str, str], Table] = {
    ("openai", OPENAI_DIALECT): openai.CHAT,
    ("azure_openai", OPENAI_DIALECT): openai.CHAT,
    ("openai", "openai.responses"): responses.RESPONSES,
    ("azure_openai", "openai.responses"): responses.RESPONSES,
    ("anthropic", "anthropic.messages"): anthropic.MESSAGES,
    ("google", "google.generateContent"): google.GEMINI,
    ("google", "google.streamGenerateContent"): google.GEMINI,
    ("google_vertex", "google.generateContent"): google.VERTEX,
    ("google_vertex", "google.streamGenerateContent"): google.VERTEX,
}
# What the vendor refused for a reason that the request does not show, or takes today.
NOT_REFUSED = {
    "multimodal_tool_return_matrix_direct_uploaded_file_image_openai_chat.317e30fe": "the type of an uploaded file",
    "error_handling_with_gemini_gemini_2_5_flash_raises_appropriate_auth_er.12aaa762": "the key is not valid",
    # https://ai.google.dev/gemini-api/docs/generate-content/media-resolution
    "google_model_video_url_detail.eae86134": "v1beta takes the resolution of a part since",
}
RECORDED = [
    recording
    for recording in recordings_of(*{api for _, api in TABLES})
    if (recording.provider, recording.api) in TABLES and recording.request
]
TAKEN = [recording for recording in RECORDED if recording.status == 200]
REFUSED = [recording for recording in RECORDED if recording.status == 400]


def check(recording: Recording) -> None:
    table = TABLES[recording.provider, recording.api]
    body = camelled(recording.request) if recording.provider.startswith("google") else recording.request
    table.check(Request(body, recording.model, recording.request_headers))


@pytest.mark.parametrize("recording", TAKEN, ids=str)
def test_recording__that_the_vendor_took__is_accepted(recording: Recording) -> None:
    check(recording)


@pytest.mark.parametrize("recording", REFUSED, ids=str)
def test_recording__that_the_vendor_refused__is_refused_in_its_words(recording: Recording) -> None:
    if recording.name in NOT_REFUSED:
        check(recording)
        return
    with pytest.raises(Refused) as refused:
        check(recording)
    message = str(refused.value).rpartition(" (")[0]
    assert message in recording.body.decode().replace('\\"', '"')
