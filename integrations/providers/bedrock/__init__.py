from integrations.providers.bedrock.adapter import ADAPTER as ADAPTER
