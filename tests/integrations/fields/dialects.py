"""The providers that have a dialect of their own."""

from __future__ import annotations

# Providers with dialects of their own, whose adapters have to handle every field, with the sources whose fields they
# share.
OWN_DIALECTS = {
    "anthropic": ("anthropic", "anthropic_beta"),
    "azure_anthropic": ("anthropic", "anthropic_beta"),
    "google": ("google",),
    "google_vertex": ("google",),
    "bedrock": ("bedrock",),
    "mistral": ("mistral",),
    "cohere": ("cohere",),
}
