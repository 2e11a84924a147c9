"""The product's version; the package's metadata, the OpenAPI document, MCP and the metrics read it here."""

VERSION = "0.1.0"
