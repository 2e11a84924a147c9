"""S3 for tests: moto's server, which checks what a bucket's name, a key and a multipart upload may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests

BUCKET = "kept-elsewhere"


@contextmanager
def object_storage() -> Iterator[dict[str, str]]:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "of-the-tests"}
        environment = {**keys, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}"}
        # Servers of one process keep their buckets together (moto's documentation, "Reset API").
        requests.post(f"{environment['AWS_ENDPOINT_URL_S3']}/moto-api/reset", timeout=30).raise_for_status()
        client = boto3.client(
            "s3",
            endpoint_url=environment["AWS_ENDPOINT_URL_S3"],
            region_name="us-east-1",
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=BUCKET)
        yield environment
    finally:
        server.stop()
