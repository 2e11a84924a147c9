"""Claude at other vendors' hosts (Vertex AI, Bedrock), for clients of the Messages API."""
