"""How an invitation becomes a role: by its link, or at the first sign-in with its address."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, login
from django.contrib.auth.forms import BaseUserCreationForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from core.audit.recording import recording
from core.models import Invitation, Membership
from core.sign_in.codes import ask_for_code, owes_code
from core.sign_in.entries import write_changes, write_sign_in


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class AccountForm(BaseUserCreationForm):  # type: ignore[type-arg]  # Django's class takes no argument when it runs
    """A new account. It has no e-mail address: nobody has verified it, and a provider may open accounts by theirs."""

    class Meta(BaseUserCreationForm.Meta):
        model = User
        fields = ("username",)

    def save(self, commit: bool = True) -> User:
        self.instance.is_staff = True
        made: User = super().save(commit)
        return made


def accept_by_address(user: User, address: str) -> bool:
    """Gives the roles that wait for this address, which the provider has verified. Returns whether there were any."""
    found = Invitation.objects.select_for_update().filter(email__iexact=address) if address else ()
    # A database may take more letters for equal than those of ASCII.
    same = [row for row in found if row.email.encode().lower() == address.encode().lower()]
    for row in same:
        _accept(row, user)
    return bool(same)


def invitation_page(request: HttpRequest, context: Mapping[str, Any], token: str) -> HttpResponseBase:
    found = Invitation.objects.filter(token_hash=hash_of(token), expires_at__gt=timezone.now()).first()
    if found is None:
        return _page(request, context, status=404)
    person = request.user
    if isinstance(person, User) and person.is_staff:
        if request.method == "POST":
            with recording() as collected, transaction.atomic():
                _accept(found, person)
            write_changes(request, person, collected.made, operation="invitation")
            return HttpResponseRedirect(_home(found))
        return _page(request, context, invitation=found, person=person)
    form = AccountForm(request.POST if request.method == "POST" else None) if settings.LOCAL_LOGIN else None
    if form is not None and form.is_valid():
        return _joined(request, found, form)
    query = f"?next={reverse('admin:invitation', args=[token])}"
    doors = [(one.label, reverse("admin:sign_in", args=[one.name]) + query) for one in settings.OIDC_PROVIDERS]
    login_address = reverse("admin:login") + query
    return _page(request, context, invitation=found, form=form, doors=doors, login_address=login_address)


def _joined(request: HttpRequest, found: Invitation, form: AccountForm) -> HttpResponseBase:
    with recording() as collected, transaction.atomic():
        made = form.save()
        _accept(found, made)
    user = authenticate(request, username=made.get_username(), password=form.cleaned_data["password1"])
    if not isinstance(user, User) or owes_code(made):
        write_changes(request, made, collected.made, operation="invitation")
        return ask_for_code(request, made, _home(found))
    login(request, user)
    write_sign_in(request, user, "invitation", collected.made)
    return HttpResponseRedirect(_home(found))


def _accept(row: Invitation, user: User) -> None:
    """A role that the person has already stays. Raises Http404 if somebody else took the invitation just now."""
    taken, _ = Invitation.objects.filter(pk=row.pk).delete()
    if not taken:
        raise Http404("This invitation was used.")
    defaults = {"role": row.role, "created_by": row.created_by}
    Membership.objects.get_or_create(project_id=row.project_id, user=user, defaults=defaults)


def _home(found: Invitation) -> str:
    return f"{reverse('admin:index')}?project={found.project_id}"


def _page(request: HttpRequest, context: Mapping[str, Any], *, status: int = 200, **more: Any) -> HttpResponseBase:
    shown = {**context, "title": "Invitation", **more}
    return TemplateResponse(request, "core/invitation.html", shown, status=status)
