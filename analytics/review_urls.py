"""The paths of review queues, below `api/llm/`."""

from __future__ import annotations

from django.urls import path

from analytics.viewsets.reviews import (
    NextReviewItemView,
    ReviewAgreementView,
    ReviewAssignmentView,
    ReviewClosingView,
    ReviewItemsView,
    ReviewQueuesView,
    ReviewQueueView,
    ReviewScoreView,
    ReviewSkipView,
)

_QUEUE = "reviews/<uuid:queue_id>"
_ITEM = f"{_QUEUE}/items/<uuid:item_id>"

urlpatterns = [
    path("reviews", ReviewQueuesView.as_view()),
    path(_QUEUE, ReviewQueueView.as_view()),
    path(f"{_QUEUE}/items", ReviewItemsView.as_view()),
    path(f"{_QUEUE}/agreement", ReviewAgreementView.as_view()),
    path(f"{_QUEUE}/close", ReviewClosingView.as_view()),
    path(f"{_QUEUE}/next", NextReviewItemView.as_view()),
    path(f"{_QUEUE}/assign", ReviewAssignmentView.as_view()),
    path(f"{_ITEM}/score", ReviewScoreView.as_view()),
    path(f"{_ITEM}/skip", ReviewSkipView.as_view()),
]
