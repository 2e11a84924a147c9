"""The reranking of documents, as Cohere and Jina have it (https://docs.cohere.com/reference/rerank)."""
