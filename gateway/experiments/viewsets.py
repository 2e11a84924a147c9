from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.serializers import EmptyBodySerializer
from gateway.experiments import shapes
from gateway.experiments.estimate import estimate
from gateway.experiments.given_answers import give_answer
from gateway.experiments.selectors import (
    experiment_detail,
    experiment_entry,
    get_experiment,
    item_entry,
    list_experiments,
    list_items,
)
from gateway.experiments.serializers import (
    ExperimentParameters,
    GivenAnswerSerializer,
    NewExperimentSerializer,
    WinnerSerializer,
)
from gateway.experiments.services import cancel_experiment, create_experiment, delete_experiment, pick_winner
from gateway.experiments.start import call_worker


class ExperimentViewSet(ProjectViewSet):
    lookup_url_kwarg = "experiment_id"
    lookup_value_converter = "uuid"

    @operation("listExperiments", "List experiments", query=[PAGE, ExperimentParameters], page=shapes.ExperimentEntry)
    def list(self, request: Request) -> Response:
        """The experiments, the newest first."""
        given = self.valid_query(ExperimentParameters).validated_data
        rows = self.rows_of_page(list_experiments(self.project_id, **given))
        return self.get_paginated_response([experiment_entry(row) for row in rows])

    @operation(
        "createExperiment",
        "Try candidates on past requests, or on a data set",
        body=NewExperimentSerializer,
        answer=shapes.ExperimentDetail,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The items are taken at once; the answers are made in the background."""
        new = self.valid_body(NewExperimentSerializer).new_experiment()
        row = create_experiment(project_id=self.project_id, new=new, actor=self.actor)
        call_worker()
        return Response(experiment_detail(get_experiment(self.project_id, row.pk)), status=status.HTTP_201_CREATED)

    @operation(
        "estimateExperiment",
        "What an experiment will cost",
        body=NewExperimentSerializer,
        answer=shapes.ExperimentEstimate,
    )
    @action(detail=False, methods=["post"], url_path="estimate")
    def estimated(self, request: Request) -> Response:
        """Nothing is made. The costs are those of the past answers, or of their tokens at the candidate's price."""
        return Response(estimate(self.project_id, self.valid_body(NewExperimentSerializer).new_experiment()))

    @operation(
        "getExperiment", "One experiment, with its summary and report", answer=shapes.ExperimentDetail, errors=[404]
    )
    def retrieve(self, request: Request, experiment_id: UUID) -> Response:
        return Response(experiment_detail(get_experiment(self.project_id, experiment_id)))

    @operation("deleteExperiment", "Delete an experiment and its answers", status=204, errors=[404])
    def destroy(self, request: Request, experiment_id: UUID) -> Response:
        delete_experiment(project_id=self.project_id, experiment_id=experiment_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "listExperimentItems",
        "The items of an experiment with all answers",
        query=[PAGE],
        page=shapes.ExperimentItemEntry,
        errors=[404],
    )
    @action(detail=True)
    def items(self, request: Request, experiment_id: UUID) -> Response:
        """Texts are null for a reader without content."""
        rows = self.rows_of_page(list_items(get_experiment(self.project_id, experiment_id)))
        return self.get_paginated_response([item_entry(row, sees_content=self.sees_content) for row in rows])

    @operation(
        "cancelExperiment",
        "End an experiment",
        body=EmptyBodySerializer,
        answer=shapes.ExperimentDetail,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, experiment_id: UUID) -> Response:
        """Answers that are there stay; calls of providers that are under way are hung up."""
        self.valid_body(EmptyBodySerializer)
        cancel_experiment(project_id=self.project_id, experiment_id=experiment_id, actor=self.actor)
        return Response(experiment_detail(get_experiment(self.project_id, experiment_id)))

    @operation(
        "pickExperimentWinner",
        "Note which answer is better",
        body=WinnerSerializer,
        answer=shapes.ExperimentItemEntry,
        errors=[404],
    )
    @action(detail=True, methods=["put"], url_path="items/<int:position>/winner")
    def winner(self, request: Request, experiment_id: UUID, position: int) -> Response:
        """A person's pick takes the place of the judge's verdict."""
        winner = self.valid_body(WinnerSerializer).validated_data["winner"] or ""
        row = pick_winner(
            project_id=self.project_id, experiment_id=experiment_id, position=position, winner=winner, actor=self.actor
        )
        return Response(item_entry(row, sees_content=self.sees_content))

    @operation(
        "giveExperimentAnswer",
        "Send an application's answer to an item",
        body=GivenAnswerSerializer,
        answer=shapes.ExperimentItemEntry,
        errors=[404, 409],
    )
    @action(detail=True, methods=["put"], url_path="items/<int:position>/answer")
    def answer(self, request: Request, experiment_id: UUID, position: int) -> Response:
        """For a candidate with `application`. The same answer may be sent again; another one is refused."""
        given = self.valid_body(GivenAnswerSerializer).validated_data
        give_answer(project_id=self.project_id, experiment_id=experiment_id, position=position, given=given)
        call_worker()
        row = list_items(get_experiment(self.project_id, experiment_id)).get(position=position)
        return Response(item_entry(row, sees_content=self.sees_content))
