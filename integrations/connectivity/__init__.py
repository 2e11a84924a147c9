"""Tests of integrations: the cheapest call that the provider answers only with a valid credential. `calls` describes
that call, `exchange` sends it, `outcomes` interprets the answer, `trial` combines these steps, and `services` stores
the result."""
