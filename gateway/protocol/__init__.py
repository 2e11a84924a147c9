"""The gateway's HTTP protocol: the chat-completion request with its bounds, headers, replies and server-sent events."""
