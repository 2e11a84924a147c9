from __future__ import annotations

from itertools import count
from uuid import UUID

from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.models.reviews import ReviewItem
from analytics.presenters.requests import find_request
from analytics.queries.requests import RequestDetailRow, get_payload
from analytics.reviews.due_labels import is_hidden
from analytics.reviews.selectors import get_item, get_queue
from analytics.reviews.wire import ReviewConversation
from analytics.wire.conversations import ConversationTurn, TextBounds, conversation_turns, skip_images

_MAX_TURNS = 50
_BOUNDS = 20_000, 200_000
_OF_THE_PROMPT = frozenset({"system", "developer"})


def item_conversation(project_id: UUID, queue_id: UUID, item_id: UUID) -> ReviewConversation:
    """Raises QueueNotFoundError, ItemNotFoundError, NotFoundError and the errors of the store."""
    item = get_item(get_queue(project_id, queue_id), item_id)
    return reviewed_conversation(item, find_request(project_id, item.request_id))


def reviewed_conversation(item: ReviewItem, row: RequestDetailRow) -> ReviewConversation:
    """The last turns of the request, and the answer. Raises the errors of the store.

    While the request is hidden, the texts of its prompt are left out: they differ by version and would tell the arm.
    Existing scores are always left out, so that they do not lead the reviewer.
    """
    payload = get_payload(item.queue.project_id, row)
    if payload is None:
        return {"turns": None, "omitted_turns": 0}
    hidden = is_hidden(item)
    given, answer = read_request(payload.request).turns, read_response(payload.response)
    shown = [turn for turn in given if not (hidden and turn.role.lower() in _OF_THE_PROMPT)]
    omitted, images = len(shown) - len(shown[-_MAX_TURNS:]), count()
    kept = {id(turn) for turn in shown[omitted:]}
    turns: list[ConversationTurn] = []
    bounds = TextBounds(*_BOUNDS)
    for turn in given:
        if id(turn) in kept:
            turns += conversation_turns([turn], bounds, images)
        else:
            skip_images([turn], images)
    # Each side has bounds of its own: a long request must not take the place of the answer, which is reviewed.
    return {"turns": [*turns, *conversation_turns(answer, TextBounds(*_BOUNDS), images)], "omitted_turns": omitted}
