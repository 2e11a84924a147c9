"""Queues of requests that people score by hand, one rubric per queue."""
