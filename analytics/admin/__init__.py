"""The pages of the admin that show the request log, scores and feedback, and deletions, one module per subject."""

from __future__ import annotations

from analytics.admin.deletions import DeletionAdmin
from analytics.admin.requests import RequestsAdmin
from analytics.admin.scores import FeedbackAdmin, ScoreAdmin
from analytics.pages import (
    api_keys,
    errors,
    providers,
    request,
    request_export,
    request_image,
    request_log,
    review,
    reviews,
    search,
    session,
    sessions,
)

__all__ = [
    "DeletionAdmin",
    "FeedbackAdmin",
    "RequestsAdmin",
    "ScoreAdmin",
    "api_keys",
    "errors",
    "providers",
    "request",
    "request_export",
    "request_image",
    "request_log",
    "review",
    "reviews",
    "search",
    "session",
    "sessions",
]
