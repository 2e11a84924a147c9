from __future__ import annotations

from integrations.media.fetcher import MediaFetcher as MediaFetcher
from integrations.media.fetcher import MediaLimits as MediaLimits
