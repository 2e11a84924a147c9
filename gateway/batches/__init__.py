"""Files and batches: calls that are passed on to the provider that keeps them, recorded, and priced when their results
are fetched (docs/batches.md)."""
