"""Claude at the hosts of other vendors, for clients of the Messages API: the client's own request at Vertex AI and at
Bedrock. `requests` rewrites what every such host has elsewhere; `vertex` and `bedrock` hold the forwarders."""
