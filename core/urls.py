from __future__ import annotations

from core.api.routers import ProjectRouter
from core.viewsets import ApiKeyViewSet, AuditViewSet, InvitationViewSet, MemberViewSet

router = ProjectRouter()
router.register("keys", ApiKeyViewSet, "api-key")
router.register("members", MemberViewSet, "member")
router.register("invitations", InvitationViewSet, "invitation")
router.register("audit", AuditViewSet, "audit")

urlpatterns = router.urls
