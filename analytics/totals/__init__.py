"""Counts requests for `/metrics` while they are shipped, without queries of the store.

`figures` are the counts, `labels` keeps their number within bounds, `counting` adds the rows of a batch, `file` makes
each batch count once, whatever is killed when, and `collector` shows them to Prometheus.
"""
