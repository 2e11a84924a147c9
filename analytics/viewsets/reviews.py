"""The endpoints of review queues."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.presenters import reviewed, reviews
from analytics.reviews import services
from analytics.reviews.selectors import get_queue
from analytics.reviews.wire import (
    AssignedReviewItems,
    NextReviewItem,
    ReviewAgreement,
    ReviewConversation,
    ReviewItemEntry,
    ReviewQueueEntry,
    ScoredReviewItem,
)
from analytics.serializers.reviews import (
    AssignmentSerializer,
    ItemParameters,
    NewReviewItemSerializer,
    NewReviewQueueSerializer,
    QueueParameters,
    ReviewAnswerSerializer,
)
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page
from core.wire.parameters import Parameters
from core.wire.serializers import EmptyBodySerializer


class ReviewQueueViewSet(ProjectViewSet):
    lookup_url_kwarg = "queue_id"
    lookup_value_converter = "uuid"

    @operation("listReviewQueues", "List review queues", query=[PAGE, QueueParameters], page=ReviewQueueEntry)
    def list(self, request: Request) -> Response:
        """The list has the newest first, each with its progress."""
        page, given = parse_page(request), _given(QueueParameters, request)
        return listing_response(request, page, reviews.queues(self.project_id, page, **given))

    @operation(
        "createReviewQueue",
        "Make a review queue",
        body=NewReviewQueueSerializer,
        answer=ReviewQueueEntry,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """Draws `sample_size` of the newest requests that match `filter`, whose names are the parameters of
        `GET requests`; or, with `due_labels`, takes what online evaluations of the evaluator have due for a person, as
        it becomes due."""
        body = self.valid_body(NewReviewQueueSerializer)
        row = services.create_queue(project_id=self.project_id, new=body.new_queue(), actor=self.actor)
        return Response(reviews.queue(self.project_id, row.pk), status=status.HTTP_201_CREATED)

    @operation("getReviewQueue", "One review queue", answer=ReviewQueueEntry, errors=[404])
    def retrieve(self, request: Request, queue_id: UUID) -> Response:
        return Response(reviews.queue(self.project_id, queue_id))

    @operation("reviewAgreement", "Agreement of reviewers and judges", answer=ReviewAgreement, errors=[404])
    @action(detail=True)
    def agreement(self, request: Request, queue_id: UUID) -> Response:
        """Compares the reviewers' scores with the latest that each other type of evaluator gave the same requests."""
        return Response(reviews.agreement(self.project_id, queue_id))

    @operation(
        "closeReviewQueue", "Close a review queue", body=EmptyBodySerializer, answer=ReviewQueueEntry, errors=[404]
    )
    @action(detail=True, methods=["post"])
    def close(self, request: Request, queue_id: UUID) -> Response:
        """A closed queue takes no more scores. Its items and scores stay."""
        self.valid_body(EmptyBodySerializer)
        services.close_queue(project_id=self.project_id, queue_id=queue_id, actor=self.actor)
        return Response(reviews.queue(self.project_id, queue_id))

    @operation(
        "nextReviewItem",
        "Take the next item of a review queue",
        body=EmptyBodySerializer,
        answer=NextReviewItem,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"], url_path="next")
    def take_next(self, request: Request, queue_id: UUID) -> Response:
        """The item is kept from other people for ten minutes. `item` is null when none is left."""
        self.valid_body(EmptyBodySerializer)
        item = services.claim_next(project_id=self.project_id, queue_id=queue_id, actor=self.actor)
        return Response(reviews.next_item(queue_id, item))

    @operation(
        "assignReviewItems",
        "Assign open items to a person",
        body=AssignmentSerializer,
        answer=AssignedReviewItems,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def assign(self, request: Request, queue_id: UUID) -> Response:
        """Assigns items that nobody has: the first `count`, or all. An empty `assignee` releases all open items."""
        body = self.valid_body(AssignmentSerializer, project_id=self.project_id)
        assigned = services.assign_items(
            project_id=self.project_id, queue_id=queue_id, actor=self.actor, **body.validated_data
        )
        return Response({"assigned": assigned})


class ReviewItemViewSet(ProjectViewSet):
    lookup_url_kwarg = "item_id"
    lookup_value_converter = "uuid"

    @operation(
        "listReviewItems",
        "Items of a review queue",
        query=[PAGE, ItemParameters],
        page=ReviewItemEntry,
        errors=[404],
    )
    def list(self, request: Request, queue_id: UUID) -> Response:
        page, given = parse_page(request), _given(ItemParameters, request)
        queue = get_queue(self.project_id, queue_id)
        return listing_response(request, page, reviews.items(queue, page, **given))

    @operation(
        "addReviewItem",
        "Add a request to a review queue",
        body=NewReviewItemSerializer,
        answer=ReviewItemEntry,
        status=201,
        errors=[404, 409],
    )
    def create(self, request: Request, queue_id: UUID) -> Response:
        """The request comes behind all others. One that the queue has already stays where it is."""
        body = self.valid_body(NewReviewItemSerializer)
        request_id = body.validated_data["request_id"]
        item, _ = services.add_item(
            project_id=self.project_id, queue_id=queue_id, request_id=request_id, actor=self.actor
        )
        return Response(reviews.entry_of(item), status=status.HTTP_201_CREATED)

    @operation("reviewItemConversation", "What the request of an item said", answer=ReviewConversation, errors=[404])
    @action(detail=True)
    def conversation(self, request: Request, queue_id: UUID, item_id: UUID) -> Response:
        """The last 50 turns and the answer, with long texts cut. Of a due label the texts of the prompt are left out
        until it is given."""
        return Response(reviewed.item_conversation(self.project_id, queue_id, item_id))

    @operation(
        "scoreReviewItem",
        "Score an item of a review queue",
        body=ReviewAnswerSerializer,
        answer=ScoredReviewItem,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def score(self, request: Request, queue_id: UUID, item_id: UUID) -> Response:
        """Records a score of evaluator type `human`. The person who gave it may change it by scoring again."""
        body = self.valid_body(ReviewAnswerSerializer)
        item, score = services.score_item(
            project_id=self.project_id, queue_id=queue_id, item_id=item_id, answer=body.answer(), actor=self.actor
        )
        return Response(reviews.scored_item(item, score))

    @operation(
        "skipReviewItem",
        "Skip an item of a review queue",
        body=EmptyBodySerializer,
        answer=NextReviewItem,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def skip(self, request: Request, queue_id: UUID, item_id: UUID) -> Response:
        self.valid_body(EmptyBodySerializer)
        item = services.skip_item(project_id=self.project_id, queue_id=queue_id, item_id=item_id, actor=self.actor)
        return Response(reviews.next_item(queue_id, item))


def _given(parameters: type[Parameters], request: Request) -> dict[str, Any]:
    """Returns the valid parameters of a query, without those that were left out."""
    found = parameters(data=request.query_params.dict())
    found.is_valid(raise_exception=True)
    return dict(found.validated_data)
