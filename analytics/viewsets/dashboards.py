"""The endpoints of dashboards, their charts, and the figures that charts can show."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.dashboards import services
from analytics.dashboards.data import ChartData, chart_data
from analytics.dashboards.questions import ChartQuestion
from analytics.dashboards.services import Reader
from analytics.figures.registry import FIGURES
from analytics.models import ChartKind
from analytics.parameters.ranges import parse_range
from analytics.serializers.dashboards import (
    ChartChangeSerializer,
    ChartSerializer,
    DashboardChangeSerializer,
    DashboardSerializer,
    FigureEntry,
    NewChartSerializer,
    NewDashboardSerializer,
    figure_entry,
)
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.roles import Right
from core.wire.pagination import Listing, listing_response, parse_page
from core.wire.parameters import RangeParameters


class FigureViewSet(ProjectViewSet):
    @operation("listFigures", "List the figures of charts", query=[PAGE], page=FigureEntry)
    def list(self, request: Request) -> Response:
        """Each with its unit, what it can be split by, and the filters that it has."""
        page = parse_page(request)
        entries = [figure_entry(figure) for figure in FIGURES.values()]
        return listing_response(request, page, Listing(len(entries), page.of(entries)))


class _OfDashboards(ProjectViewSet):
    @property
    def reader(self) -> Reader:
        return Reader(self.project_id, self.actor, Right.EDIT in self.access.rights)


class DashboardViewSet(_OfDashboards):
    lookup_url_kwarg = "dashboard_id"
    lookup_value_converter = "uuid"

    @operation("listDashboards", "List dashboards", query=[PAGE], page=DashboardSerializer)
    def list(self, request: Request) -> Response:
        """The caller's own and those that others share, by name."""
        return self.page(services.list_dashboards(self.reader), DashboardSerializer)

    @operation(
        "createDashboard",
        "Make a dashboard",
        body=NewDashboardSerializer,
        answer=DashboardSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """Unless it is shared, nobody but the caller sees it. There are at most 50 of each caller."""
        given = self.valid_body(NewDashboardSerializer).validated_data
        row = services.add_dashboard(self.reader, **given)
        return Response(DashboardSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getDashboard", "One dashboard with its charts", answer=DashboardSerializer, errors=[404])
    def retrieve(self, request: Request, dashboard_id: UUID) -> Response:
        return Response(DashboardSerializer(services.get_dashboard(self.reader, dashboard_id)).data)

    @operation(
        "changeDashboard",
        "Rename or share a dashboard",
        body=DashboardChangeSerializer,
        answer=DashboardSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, dashboard_id: UUID) -> Response:
        """Omitted fields stay as they are. A shared dashboard is changed by its owner and by editors."""
        given = self.valid_body(DashboardChangeSerializer).validated_data
        row = services.change_dashboard(self.reader, dashboard_id, given)
        return Response(DashboardSerializer(row).data)

    @operation("deleteDashboard", "Delete a dashboard", status=204, errors=[404])
    def destroy(self, request: Request, dashboard_id: UUID) -> Response:
        services.remove_dashboard(self.reader, dashboard_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ChartViewSet(_OfDashboards):
    lookup_url_kwarg = "chart_id"
    lookup_value_converter = "uuid"

    @operation(
        "createChart",
        "Add a chart to a dashboard",
        body=NewChartSerializer,
        answer=ChartSerializer,
        status=201,
        errors=[404, 409],
    )
    def create(self, request: Request, dashboard_id: UUID) -> Response:
        """The chart stands behind the others, of which there are at most 12."""
        given = self.valid_body(NewChartSerializer).validated_data
        chart = services.add_chart(self.reader, dashboard_id, given)
        return Response(ChartSerializer(chart).data, status=status.HTTP_201_CREATED)

    @operation(
        "changeChart", "Change or move a chart", body=ChartChangeSerializer, answer=ChartSerializer, errors=[404]
    )
    def partial_update(self, request: Request, dashboard_id: UUID, chart_id: UUID) -> Response:
        """Omitted fields stay as they are; `position` moves the chart among the others."""
        given = self.valid_body(ChartChangeSerializer).validated_data
        return Response(ChartSerializer(services.change_chart(self.reader, dashboard_id, chart_id, given)).data)

    @operation("deleteChart", "Remove a chart", status=204, errors=[404])
    def destroy(self, request: Request, dashboard_id: UUID, chart_id: UUID) -> Response:
        services.remove_chart(self.reader, dashboard_id, chart_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("chartData", "What a chart shows", query=[RangeParameters], answer=ChartData, errors=[404])
    @action(detail=True)
    def data(self, request: Request, dashboard_id: UUID, chart_id: UUID) -> Response:
        """Values over time, or a row for each key. A figure, an API key or a prompt that is not there any more is a
        400 that names it."""
        chart = services.get_chart(services.get_dashboard(self.reader, dashboard_id), chart_id)
        question, time_range = ChartQuestion.of(chart), parse_range(request)
        return Response(chart_data(self.project_id, ChartKind(chart.kind), question, time_range))
