"""The tables of scores, feedback and deletions in the admin, and the request log in its index."""

from __future__ import annotations

from analytics.admin.deletions import DeletionAdmin
from analytics.admin.requests import RequestsAdmin
from analytics.admin.scores import FeedbackAdmin, ScoreAdmin

__all__ = ["DeletionAdmin", "FeedbackAdmin", "RequestsAdmin", "ScoreAdmin"]
