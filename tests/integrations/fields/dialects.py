"""Which providers have a dialect of their own."""

from __future__ import annotations

# Providers of dialects of their own, which have to look at every field; and the sources whose words they share.
OWN_DIALECTS = {
    "anthropic": ("anthropic", "anthropic_beta"),
    "azure_anthropic": ("anthropic", "anthropic_beta"),
    "google": ("google",),
    "google_vertex": ("google",),
    "bedrock": ("bedrock",),
    "mistral": ("mistral",),
    "cohere": ("cohere",),
}
