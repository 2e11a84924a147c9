"""The surface of speech."""

from __future__ import annotations

from typing_extensions import override

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.speech import MEDIA_TYPES, read


class SpeechSurface(NativeOnlySurface):
    name = "speech"
    operation = "speech"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    @override
    def content_type(self, request: SurfaceRequest) -> bytes:
        return MEDIA_TYPES[request.echo]


SURFACE = SpeechSurface()
