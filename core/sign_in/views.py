from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import REDIRECT_FIELD_NAME, login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from core.audit.recording import recording
from core.errors import PermissionDeniedError
from core.http.failures import failure
from core.http.logins import TooManyLoginsError, client_address
from core.sign_in.accounts import account_of
from core.sign_in.backends import OPEN_ID_BACKEND
from core.sign_in.codes import ask_for_code, owes_code
from core.sign_in.entries import write_sign_in
from core.sign_in.openid import SignInError, authorization_address, claims_of_answer, logout_address
from core.sign_in.providers import Provider
from core.sign_in.throttle import WINDOW_SECONDS, may_begin

logger = logging.getLogger("core.sign_in")

# The key of a session that a provider began: its name and the ID token, which the logout there asks for.
_SESSION_KEY = "sign_in_provider"
# Where a sign-in that was begun ends, by the provider.
_NEXT_KEY = "sign_in_next"


class LocalLoginForm(AdminAuthenticationForm):
    error_messages = {
        **AdminAuthenticationForm.error_messages,
        "invalid_login": "Username or password is wrong. Both distinguish capital and small letters.",
    }


class LocalLoginView(LoginView):
    authentication_form = LocalLoginForm
    template_name = "admin/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.LOCAL_LOGIN:
            return failure(request, PermissionDeniedError(_NO_LOCAL_LOGIN, code="local_login_off"))
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponseBase:  # type: ignore[override]  # Django's stubs name a subclass
        if owes_code(form.get_user()):
            return ask_for_code(self.request, form.get_user(), self.get_success_url())
        response = super().form_valid(form)
        write_sign_in(self.request, form.get_user(), "password")
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        target = self.get_redirect_url()
        query = f"?{urlencode({REDIRECT_FIELD_NAME: target})}" if target else ""
        providers = [
            {"label": one.label, "address": reverse("admin:sign_in", args=[one.name]) + query}
            for one in settings.OIDC_PROVIDERS
        ]
        return super().get_context_data(providers=providers, **kwargs)


_NO_LOCAL_LOGIN = "Logins with a password are switched off here. Sign in by your organisation's provider."


@never_cache
@require_GET
def begin(request: HttpRequest, provider: str) -> HttpResponseBase:
    chosen = _provider(provider)
    if not may_begin(client_address(request)):
        headers = {"retry-after": str(WINDOW_SECONDS)}
        return failure(request, TooManyLoginsError("Too many sign-ins were begun from here.", headers=headers))
    try:
        address = authorization_address(request, chosen, _callback(request, chosen))
    except SignInError as error:
        return _failed(request, chosen, error, _safe_next(request, request.GET.get(REDIRECT_FIELD_NAME, "")))
    request.session[_NEXT_KEY] = {
        **request.session.get(_NEXT_KEY, {}), chosen.name: request.GET.get(REDIRECT_FIELD_NAME, "")
    }  # fmt: skip
    return HttpResponseRedirect(address)


@never_cache
@require_GET
def callback(request: HttpRequest, provider: str) -> HttpResponseBase:
    chosen = _provider(provider)
    target = _safe_next(request, request.session.get(_NEXT_KEY, {}).get(chosen.name, ""))
    try:
        claims, id_token = claims_of_answer(request, chosen)
        with recording() as collected:
            user, problems = account_of(chosen, claims)
    except SignInError as error:
        return _failed(request, chosen, error, target)
    request.session.pop(_NEXT_KEY, None)
    _log_in(request, chosen, user, id_token)
    write_sign_in(request, user, f"OpenID Connect ({chosen.name})", collected.made)
    for problem in problems:
        messages.warning(request, problem)
    return HttpResponseRedirect(target or reverse(settings.LOGIN_REDIRECT_URL))


def log_out_there(request: HttpRequest) -> tuple[Provider, str] | None:
    kept = request.session.get(_SESSION_KEY)
    provider = next((one for one in settings.OIDC_PROVIDERS if kept and one.name == kept["name"]), None)
    if kept is None or provider is None:
        return None
    back = request.build_absolute_uri(reverse("admin:login"))
    address = logout_address(provider, kept["id_token"], back)
    return (provider, address) if address else None


def _log_in(request: HttpRequest, provider: Provider, user: User, id_token: str) -> None:
    login(request, user, backend=OPEN_ID_BACKEND)
    request.session[_SESSION_KEY] = {"name": provider.name, "id_token": id_token}
    # Groups are asked for with each sign-in, so that one must not last for weeks.
    request.session.set_expiry(timezone.now() + timedelta(hours=settings.OIDC_SESSION_HOURS))
    logger.info("sign_in.succeeded provider=%s user=%d", provider.name, user.pk)


def _failed(request: HttpRequest, provider: Provider, error: SignInError, target: str) -> HttpResponseBase:
    logger.warning(
        "sign_in.failed provider=%s reason=%s client=%s", provider.name, error.reason, client_address(request)
    )
    messages.error(request, error.message)
    query = f"?{urlencode({REDIRECT_FIELD_NAME: target})}" if target else ""
    return HttpResponseRedirect(reverse("admin:login") + query)


def _provider(name: str) -> Provider:
    for provider in settings.OIDC_PROVIDERS:
        if provider.name == name:
            return provider
    raise Http404("There is no such provider.")


def _callback(request: HttpRequest, provider: Provider) -> str:
    return request.build_absolute_uri(reverse("admin:sign_in_callback", args=[provider.name]))


def _safe_next(request: HttpRequest, target: str) -> str:
    is_safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_safe else ""
