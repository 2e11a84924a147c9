"""The adapter of Amazon Bedrock's Converse API, which has one dialect for the models of many vendors."""

from integrations.providers.bedrock.adapter import ADAPTER as ADAPTER
