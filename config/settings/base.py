"""Django's own settings. Each subsystem has its own file; every value comes from a typed environment reader."""

from __future__ import annotations

import sys

from config import env
from config.settings.agent import *  # noqa: F403 - Django settings are one namespace, written in several files
from config.settings.analytics import *  # noqa: F403
from config.settings.celery import *  # noqa: F403
from config.settings.database import DATABASE_WAIT_SECONDS as DATABASE_WAIT_SECONDS
from config.settings.database import DATABASES as DATABASES
from config.settings.gateway import *  # noqa: F403
from config.settings.integrations import *  # noqa: F403
from config.settings.logging import LOGGING as LOGGING
from config.settings.monitoring import *  # noqa: F403
from config.settings.openapi import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from config.settings.pages import *  # noqa: F403
from config.settings.paths import BASE_DIR as BASE_DIR
from config.settings.paths import VAR_DIR as VAR_DIR
from config.settings.rollouts import *  # noqa: F403
from config.settings.secrets import ENCRYPTION_KEYS as ENCRYPTION_KEYS
from config.settings.secrets import SECRET_KEY as SECRET_KEY
from config.settings.secrets import SECRET_KEY_FALLBACKS as SECRET_KEY_FALLBACKS
from config.settings.sign_in import *  # noqa: F403
from config.settings.web import *  # noqa: F403

DEBUG = env.boolean("DEBUG", False)
ALLOWED_HOSTS = env.strings("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.strings("CSRF_TRUSTED_ORIGINS", [])
CSRF_FAILURE_VIEW = "core.http.failures.csrf_failure"

INSTALLED_APPS = [
    # Daphne's `runserver` is for development; it has to precede staticfiles. No other process imports Twisted.
    *(["daphne"] if "runserver" in sys.argv[:2] else []),
    "core.site.apps.RightsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "axes",
    "csp",
    "core",
    "integrations",
    "analytics",
    "prompts",
    "rollouts",
    "gateway",
    "agent",
    "console",
    "config",
]

MIDDLEWARE = [
    "core.http.middleware.RequestIdMiddleware",
    "csp.middleware.CSPMiddleware",
    "core.http.hosts.HostMiddleware",
    "core.http.paths.EncodedSlashMiddleware",
    "core.http.bodies.BodyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "core.http.middleware.CompressedStaticMiddleware",
    # WhiteNoise serves the admin's static files, so no web server is needed in front; gateway paths do not pass here.
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "core.ui.middleware.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "core.http.middleware.DatabaseAwayMiddleware",
    # The login middleware comes last, because it replaces the response to a login that is not allowed.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Templates that override every page of the admin have to be found before the admin's own.
        # Templates of the console's pages are beside their code.
        "DIRS": [BASE_DIR / "config" / "templates", BASE_DIR / "console"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "static/"
# The static files of a page of the console are in the page's own folder.
STATICFILES_DIRS = [
    (f"console/{folder.parent.name}", str(folder)) for folder in sorted((BASE_DIR / "console").glob("*/static"))
]
WHITENOISE_USE_FINDERS = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The maximum body of the management API in bytes; the largest are whole conversations for the playground.
MANAGEMENT_BODY_BYTES = env.integer("MANAGEMENT_BODY_BYTES", 8 * 1024 * 1024, minimum=1024)
# Django's own limit, of JSON and of forms, is the same one.
DATA_UPLOAD_MAX_MEMORY_SIZE = MANAGEMENT_BODY_BYTES

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "core.api.authentication.ApiKeyAuthentication",
        "core.api.authentication.StaffSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["core.api.permissions.IsProjectMember"],
    "DEFAULT_PAGINATION_CLASS": "core.wire.pagination.LimitOffset",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.wire.parsers.StorableJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "core.openapi.schema.ManagementSchema",
    "EXCEPTION_HANDLER": "core.http.exception_handler.handle_exception",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "COERCE_DECIMAL_TO_STRING": True,
}
