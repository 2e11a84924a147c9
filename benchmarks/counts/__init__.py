"""What a request and a chunk of a stream cost in counts that do not depend on the machine, and the bounds of these."""
