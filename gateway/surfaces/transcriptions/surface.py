"""The surface of transcriptions."""

from __future__ import annotations

from typing_extensions import override

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.transcriptions import read


class TranscriptionsSurface(NativeOnlySurface):
    name = "transcriptions"
    operation = "transcriptions"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    @override
    def content_type(self, request: SurfaceRequest) -> bytes:
        found: bytes = request.echo
        return found


SURFACE = TranscriptionsSurface()
