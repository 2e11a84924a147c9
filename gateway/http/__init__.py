"""HTTP beside the consumers: answers to browsers of other origins, readiness, bodies of management calls."""
