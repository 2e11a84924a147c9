"""The operations that no chat completion can express, each with the request that a provider gets as it came."""
