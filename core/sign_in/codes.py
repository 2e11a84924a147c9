from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import BACKEND_SESSION_KEY, authenticate, login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString

from core.audit.recording import recording
from core.models import SecondFactor
from core.sign_in import second_factor
from core.sign_in.backends import METHOD_ATTRIBUTE, OPEN_ID_BACKEND, SECOND_FACTOR_BACKEND
from core.sign_in.entries import write_changes, write_sign_in

# The key of a session whose person gave the right password and still owes the code, and how long it may be owed.
_PENDING_KEY = "sign_in_pending"
_PENDING_SECONDS = 600
_WRONG = "This code is wrong, was used before, or came too soon after a wrong one. Wait for the next code of your app."


class CodeForm(forms.Form):
    code = forms.CharField(
        max_length=40,
        label="Code",
        help_text="Six digits of your app, or a recovery code.",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}),
    )


def owes_code(user: User) -> bool:
    return second_factor.is_required(user) or second_factor.has_one(user)


def ask_for_code(request: HttpRequest, user: User, target: str) -> HttpResponseBase:
    request.session.cycle_key()
    request.session[_PENDING_KEY] = {
        "user": user.pk, "password": user.get_session_auth_hash(), "at": time.time(), "next": target
    }  # fmt: skip
    name = "second_factor_code" if second_factor.has_one(user) else "second_factor"
    return HttpResponseRedirect(reverse(f"admin:{name}"))


def code_page(request: HttpRequest, context: Mapping[str, Any]) -> HttpResponseBase:
    user = _pending(request)
    if user is None:
        return _login_again(request)
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        found = authenticate(request, username=user.get_username(), token=form.cleaned_data["code"])
        if found is not None and found.pk == user.pk:
            return HttpResponseRedirect(_finish(request, user, f"password and {getattr(found, METHOD_ATTRIBUTE)}"))
        form.add_error("code", _WRONG)
    return _page(request, "code.html", context, form=form, title="Code")


def set_up_page(request: HttpRequest, context: Mapping[str, Any]) -> HttpResponseBase:
    pending = None if request.user.is_authenticated else _pending(request)
    user = request.user if request.user.is_authenticated else pending
    if not isinstance(user, User) or not (user.is_staff and user.is_active):
        return _login_again(request)
    if not (settings.LOCAL_LOGIN and user.has_usable_password()):
        return _page(request, "set_up.html", context, by_provider=True)
    if second_factor.has_one(user):
        return _login_again(request) if pending else _manage(request, user, context)
    return _set_up(request, user, context, is_pending=pending is not None)


def _set_up(request: HttpRequest, user: User, context: Mapping[str, Any], *, is_pending: bool) -> HttpResponseBase:
    form = CodeForm(request.POST if request.method == "POST" else None)
    form.fields["code"].help_text = "The six digits that your app shows now."
    if form.is_valid():
        with recording() as collected:
            codes = second_factor.confirm(user, form.cleaned_data["code"])
        if codes is not None:
            write_changes(request, user, collected.made)
            target = _finish(request, user, "password and code") if is_pending else _strengthen(request, user)
            return _codes(request, context, codes, target)
        form.add_error("code", _WRONG)
    factor = second_factor.begin(user)
    return _page(
        request,
        "set_up.html",
        context,
        form=form,
        is_required=is_pending,
        key=second_factor.key_of(factor),
        image=_image_of(factor),
    )


def _image_of(factor: SecondFactor) -> SafeString:
    import segno  # most processes never draw one

    code = segno.make(second_factor.address_of(factor), error="m")
    return SafeString(code.svg_inline(border=2, omitsize=True, title="QR code of the key"))


def _manage(request: HttpRequest, user: User, context: Mapping[str, Any]) -> HttpResponseBase:
    form = CodeForm(request.POST if request.method == "POST" else None)
    may_remove = not second_factor.is_required(user)
    if form.is_valid():
        # As at the login, so that wrong codes are counted here too.
        if authenticate(request, username=user.get_username(), token=form.cleaned_data["code"]) is None:
            form.add_error("code", _WRONG)
        elif request.POST.get("action") == "remove" and may_remove:
            with recording() as collected:
                second_factor.remove(user)
            write_changes(request, user, collected.made)
            messages.success(request, "Your second factor was removed. From now on your password is enough.")
            return HttpResponseRedirect(request.path)
        else:
            return _codes(request, context, second_factor.replace_recovery_codes(user), reverse("admin:index"))
    left = user.recovery_codes.count()
    return _page(request, "manage.html", context, form=form, may_remove=may_remove, codes_left=left)


def _codes(request: HttpRequest, context: Mapping[str, Any], codes: list[str], target: str) -> HttpResponseBase:
    return _page(request, "recovery_codes.html", context, codes=codes, target=target, title="Recovery codes")


def _finish(request: HttpRequest, user: User, method: str) -> str:
    target: str = request.session.pop(_PENDING_KEY)["next"]
    login(request, user, backend=SECOND_FACTOR_BACKEND)
    write_sign_in(request, user, method)
    return target


def _strengthen(request: HttpRequest, user: User) -> str:
    if request.session[BACKEND_SESSION_KEY] != OPEN_ID_BACKEND:
        login(request, user, backend=SECOND_FACTOR_BACKEND)
    return reverse("admin:index")


def _pending(request: HttpRequest) -> User | None:
    kept = request.session.get(_PENDING_KEY)
    if not settings.LOCAL_LOGIN or not kept or not 0 <= time.time() - kept["at"] <= _PENDING_SECONDS:
        return None
    user = User.objects.filter(pk=kept["user"], is_active=True).first()
    return user if user is not None and user.get_session_auth_hash() == kept["password"] else None


def _login_again(request: HttpRequest) -> HttpResponse:
    request.session.pop(_PENDING_KEY, None)
    messages.error(request, "The login took too long or is over. Log in again.")
    return HttpResponseRedirect(reverse("admin:login"))


def _page(request: HttpRequest, template: str, context: Mapping[str, Any], **more: Any) -> HttpResponseBase:
    return TemplateResponse(request, f"core/second_factor/{template}", {**context, "title": "Second factor", **more})
