"""The endpoints of trials."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.serializers import EmptyBodySerializer
from gateway.trials import shapes
from gateway.trials.estimate import estimate
from gateway.trials.selectors import get_trial, input_entry, list_inputs, list_trials, trial_detail, trial_entry
from gateway.trials.serializers import NewTrialSerializer, WinnerSerializer
from gateway.trials.services import cancel_trial, create_trial, delete_trial, pick_winner
from gateway.trials.start import call_worker


class TrialViewSet(ProjectViewSet):
    lookup_url_kwarg = "trial_id"
    lookup_value_converter = "uuid"

    @operation("listTrials", "List trials", query=[PAGE], page=shapes.TrialEntry)
    def list(self, request: Request) -> Response:
        """The trials, the newest first."""
        rows = self.rows_of_page(list_trials(self.project_id))
        return self.get_paginated_response([trial_entry(row) for row in rows])

    @operation(
        "createTrial",
        "Try candidates on past inputs",
        body=NewTrialSerializer,
        answer=shapes.TrialDetail,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The inputs are taken at once; the answers are made in the background."""
        new = self.valid_body(NewTrialSerializer).new_trial()
        row = create_trial(project_id=self.project_id, new=new, actor=self.actor)
        call_worker()
        return Response(trial_detail(get_trial(self.project_id, row.pk)), status=status.HTTP_201_CREATED)

    @operation("estimateTrial", "What a trial will cost", body=NewTrialSerializer, answer=shapes.TrialEstimate)
    @action(detail=False, methods=["post"], url_path="estimate")
    def estimated(self, request: Request) -> Response:
        """Nothing is made. The costs are those of the past answers, or of their tokens at the candidate's price."""
        return Response(estimate(self.project_id, self.valid_body(NewTrialSerializer).new_trial()))

    @operation("getTrial", "One trial, with its summary", answer=shapes.TrialDetail, errors=[404])
    def retrieve(self, request: Request, trial_id: UUID) -> Response:
        return Response(trial_detail(get_trial(self.project_id, trial_id)))

    @operation("deleteTrial", "Delete a trial and its answers", status=204, errors=[404])
    def destroy(self, request: Request, trial_id: UUID) -> Response:
        delete_trial(project_id=self.project_id, trial_id=trial_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "listTrialInputs",
        "The inputs of a trial with all answers",
        query=[PAGE],
        page=shapes.TrialInputEntry,
        errors=[404],
    )
    @action(detail=True)
    def inputs(self, request: Request, trial_id: UUID) -> Response:
        """Texts are null for a reader without content."""
        rows = self.rows_of_page(list_inputs(get_trial(self.project_id, trial_id)))
        return self.get_paginated_response([input_entry(row, sees_content=self.sees_content) for row in rows])

    @operation("cancelTrial", "End a trial", body=EmptyBodySerializer, answer=shapes.TrialDetail, errors=[404, 409])
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, trial_id: UUID) -> Response:
        """Answers that are there stay; calls of providers that are under way are hung up."""
        self.valid_body(EmptyBodySerializer)
        cancel_trial(project_id=self.project_id, trial_id=trial_id, actor=self.actor)
        return Response(trial_detail(get_trial(self.project_id, trial_id)))

    @operation(
        "pickTrialWinner",
        "Note which answer is better",
        body=WinnerSerializer,
        answer=shapes.TrialInputEntry,
        errors=[404],
    )
    @action(detail=True, methods=["put"], url_path="inputs/<int:position>/winner")
    def winner(self, request: Request, trial_id: UUID, position: int) -> Response:
        """A person's pick takes the place of the judge's verdict."""
        winner = self.valid_body(WinnerSerializer).validated_data["winner"] or ""
        row = pick_winner(
            project_id=self.project_id, trial_id=trial_id, position=position, winner=winner, actor=self.actor
        )
        return Response(input_entry(row, sees_content=self.sees_content))
