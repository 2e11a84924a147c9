"""Counts requests for `/metrics` while they are shipped, without queries of the store.

`figures` are the counts, `labels` limits their number, `counting` adds the rows of a batch, `file` counts each batch
once even if a process is killed, and `collector` shows them to Prometheus.
"""
