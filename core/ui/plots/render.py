from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.safestring import SafeString

from core.ui.plots.bar_list import render_bar_list
from core.ui.plots.interval import render_interval
from core.ui.plots.shapes import BarList, Interval, Plot, Sparkline, Strip, Waterfall
from core.ui.plots.sparkline import render_sparkline
from core.ui.plots.strip import render_strip
from core.ui.plots.time_plot import render_plot
from core.ui.plots.waterfall import render_waterfall

Drawing = Plot | BarList | Interval | Waterfall | Strip | Sparkline


def render(plot: Drawing, *, now: datetime | None = None) -> SafeString:
    moment, zone = now or timezone.now(), timezone.get_current_timezone()
    match plot:
        case Plot():
            return render_plot(plot, zone, moment)
        case Strip():
            return render_strip(plot, zone, moment)
        case BarList():
            return render_bar_list(plot)
        case Waterfall():
            return render_waterfall(plot)
        case Interval():
            return render_interval(plot)
        case Sparkline():
            return render_sparkline(plot)
