"""Exports the spans of a project's requests to its own OTLP collectors (docs/analytics.md#trace-destinations).

`destinations` changes the destinations, `encoder` makes OTLP of spans, `delivery` posts a batch, and `trial` sends one
span to see what the collector answers.
"""
