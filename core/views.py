from __future__ import annotations

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from core.errors import ServiceUnavailableError
from core.http.exception_handler import translate
from core.http.failures import failure, wants_page


def health(request: HttpRequest) -> HttpResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:
        known = translate(error)
        if not isinstance(known, ServiceUnavailableError):
            raise
        return failure(request, known)
    return JsonResponse({"status": "ok"})


def home(request: HttpRequest) -> HttpResponse:
    version = settings.SPECTACULAR_SETTINGS["VERSION"]
    if wants_page(request):
        return render(request, "core/home.html", {"version": version})
    return JsonResponse(
        {
            "name": "Prompt Gateway",
            "version": version,
            "openai_base_url": request.build_absolute_uri("/api/gateway/v1"),
            "openapi": request.build_absolute_uri(reverse("openapi")),
            "admin": request.build_absolute_uri(reverse("admin:index")),
        }
    )
