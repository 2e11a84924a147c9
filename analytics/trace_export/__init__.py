"""Exports the spans of a project's requests to its own OTLP collectors (docs/trace-export.md).

The shipper hands over the records that the store has (`analytics.spool.handover`). `batches` makes batches of them,
`outbox` keeps a destination's batches on disk, and `sender` sends them; `exporter` is the process. `destinations`
changes the destinations themselves, and `trial` sends one span to see what a collector answers.
"""
