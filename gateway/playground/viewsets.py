from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.http.arrival import arrived_at
from core.openapi import PAGE, operation
from core.wire.shown import seen_as
from gateway.playground.catalog import list_models
from gateway.playground.chat import chat_body
from gateway.playground.comparison import Contender, compared
from gateway.playground.errors import PlaygroundError
from gateway.playground.prompts import requested_version
from gateway.playground.serializers import CompareSerializer, ModelParameters, PlaygroundSerializer, validated
from gateway.playground.services import PlaygroundRun, run_all, stream_one, streamed_whole
from gateway.playground.shapes import PlaygroundComparison, PlaygroundModel, PlaygroundResult
from gateway.worker.current import is_served, on_loop, serving_runtime


class PlaygroundViewSet(ProjectViewSet):
    @operation(
        "tryModel",
        "Try a model",
        body=PlaygroundSerializer,
        answer=PlaygroundResult,
        also={(200, "text/event-stream"): {"type": "string"}},
        errors=[404, 409, 422, 429],
    )
    def create(self, request: Request) -> HttpResponseBase:
        """One model's answer with its time and cost. A failure has the status and the error that the gateway gives."""
        given = validated(PlaygroundSerializer, request.data)
        model, stream = given["model"], given["stream"]
        bodies = {model: chat_body(model, given, stream=stream)}
        run = self._run_of(given, bodies, settings.PLAYGROUND_SECONDS)
        if stream:
            return _streamed(run)
        (result,) = on_loop(partial(run_all, run=run))
        if result.answer.error is not None:
            raise PlaygroundError(result.answer)
        return Response(result.shown())

    @operation(
        "compareModels",
        "Try several models at once",
        body=CompareSerializer,
        answer=PlaygroundComparison,
        errors=[404, 409, 422, 429],
    )
    @action(detail=False, methods=["post"])
    def compare(self, request: Request) -> Response:
        """Several models' answers, requested at the same time. A model that fails does so in its own result."""
        given = validated(CompareSerializer, request.data)
        bodies = {model: chat_body(model, given) for model in given["compare_models"]}
        results = on_loop(partial(run_all, run=self._run_of(given, bodies, _left(request, settings.COMPARE_SECONDS))))
        figures = compared([seen_as(Contender, result) for result in results])
        return Response({"results": [result.shown() for result in results], **figures})

    @operation("listPlaygroundModels", "List models to try", query=[PAGE, ModelParameters], page=PlaygroundModel)
    @action(detail=False)
    def models(self, request: Request) -> Response:
        """Models of the project's enabled providers whose price is known, preferred ones first. Others can be tried
        as well: a provider may serve what no price list has."""
        search = self.valid_query(ModelParameters).validated_data["search"]
        return self.get_paginated_response(self.rows_of_page(list_models(self.project_id, search)))

    def _run_of(self, given: Mapping[str, Any], bodies: Mapping[str, bytes], seconds: float) -> PlaygroundRun:
        return PlaygroundRun(
            project_id=self.project_id,
            actor=self.actor,
            session_id=given["session_id"],
            messages=given["messages"],
            bodies=bodies,
            evaluate=given["auto_evaluate"],
            seconds=seconds,
            version=requested_version(self.project_id, given),
        )


def _left(request: Request, seconds: float) -> float:
    """The time limit runs from the call's arrival: a busy worker must not extend it."""
    passed = (timezone.now() - arrived_at(request)).total_seconds()
    # A clock that was set meanwhile must not make the time much shorter.
    return seconds - min(max(passed, 0.0), seconds / 2)


def _streamed(run: PlaygroundRun) -> StreamingHttpResponse:
    if is_served():
        # The configuration is read before anything is sent, so that a failure has a status.
        on_loop(lambda runtime: runtime.snapshots.project(run.project_id))
        response = StreamingHttpResponse(_parts(run))
    else:
        # Without a server's event loop the answer cannot be streamed, and is sent as a whole.
        response = StreamingHttpResponse(on_loop(partial(streamed_whole, run=run)))
    response.headers["Content-Type"] = "text/event-stream; charset=utf-8"
    response.headers["Cache-Control"] = "no-cache"
    # nginx would otherwise buffer the whole stream before passing it on.
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def _parts(run: PlaygroundRun) -> AsyncGenerator[bytes]:
    async with serving_runtime() as runtime, aclosing(stream_one(runtime, run)) as parts:
        async for part in parts:
            yield part
