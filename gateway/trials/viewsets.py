"""The endpoints of trials."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
from core.wire.serializers import EmptyBodySerializer
from gateway.trials import shapes
from gateway.trials.estimate import estimate
from gateway.trials.selectors import get_trial, input_entry, list_inputs, list_trials, trial_detail, trial_entry
from gateway.trials.serializers import NewTrialSerializer, WinnerSerializer
from gateway.trials.services import NewTrial, cancel_trial, create_trial, delete_trial, pick_winner
from gateway.trials.start import call_worker


class TrialsView(ProjectAPIView):
    @operation("listTrials", "List trials", query=[PAGE], page=shapes.TrialEntry)
    def get(self, request: Request) -> Response:
        """The trials, the newest first."""
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(list_trials(self.project_id), request, self)
        return paginator.get_paginated_response([trial_entry(row) for row in rows or ()])

    @operation(
        "createTrial",
        "Try candidates on past inputs",
        body=NewTrialSerializer,
        answer=shapes.TrialDetail,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """The inputs are taken at once; the answers are made in the background."""
        row = create_trial(project_id=self.project_id, new=_new_trial(request), actor=self.actor)
        call_worker()
        return Response(trial_detail(get_trial(self.project_id, row.pk)), status=status.HTTP_201_CREATED)


class TrialEstimateView(ProjectAPIView):
    @operation("estimateTrial", "What a trial will cost", body=NewTrialSerializer, answer=shapes.TrialEstimate)
    def post(self, request: Request) -> Response:
        """Nothing is made. The costs are those of the past answers, or of their tokens at the candidate's price."""
        return Response(estimate(self.project_id, _new_trial(request)))


class TrialView(ProjectAPIView):
    @operation("getTrial", "One trial, with its summary", answer=shapes.TrialDetail, errors=[404])
    def get(self, request: Request, trial_id: UUID) -> Response:
        return Response(trial_detail(get_trial(self.project_id, trial_id)))

    @operation("deleteTrial", "Delete a trial and its answers", status=204, errors=[404])
    def delete(self, request: Request, trial_id: UUID) -> Response:
        delete_trial(project_id=self.project_id, trial_id=trial_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TrialInputsView(ProjectAPIView):
    @operation(
        "listTrialInputs",
        "The inputs of a trial with all answers",
        query=[PAGE],
        page=shapes.TrialInputEntry,
        errors=[404],
    )
    def get(self, request: Request, trial_id: UUID) -> Response:
        """Texts are null for a reader without content."""
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(list_inputs(get_trial(self.project_id, trial_id)), request, self)
        entries = [input_entry(row, sees_content=self.sees_content) for row in rows or ()]
        return paginator.get_paginated_response(entries)


class TrialCancellationView(ProjectAPIView):
    @operation("cancelTrial", "End a trial", body=EmptyBodySerializer, answer=shapes.TrialDetail, errors=[404, 409])
    def post(self, request: Request, trial_id: UUID) -> Response:
        """Answers that are there stay; calls of providers that are under way are hung up."""
        EmptyBodySerializer(data=request.data).is_valid(raise_exception=True)
        cancel_trial(project_id=self.project_id, trial_id=trial_id, actor=self.actor)
        return Response(trial_detail(get_trial(self.project_id, trial_id)))


class TrialWinnerView(ProjectAPIView):
    @operation(
        "pickTrialWinner",
        "Note which answer is better",
        body=WinnerSerializer,
        answer=shapes.TrialInputEntry,
        errors=[404],
    )
    def put(self, request: Request, trial_id: UUID, position: int) -> Response:
        """A person's pick takes the place of the judge's verdict."""
        given = WinnerSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        winner = given.validated_data["winner"] or ""
        row = pick_winner(
            project_id=self.project_id, trial_id=trial_id, position=position, winner=winner, actor=self.actor
        )
        return Response(input_entry(row, sees_content=self.sees_content))


def _new_trial(request: Request) -> NewTrial:
    given = NewTrialSerializer(data=request.data)
    given.is_valid(raise_exception=True)
    return given.new_trial()
