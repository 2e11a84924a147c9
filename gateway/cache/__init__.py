"""The response cache: repeats an earlier answer to the same request (docs/glossary.md)."""
