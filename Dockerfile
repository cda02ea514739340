# The build needs nothing but this directory and the packages that requirements/ locks.
# BASE is any Debian with Python 3.11 or later as python3, such as one of your own registry, or by its
# digest: docker build --build-arg BASE=registry.example/python@sha256:...
ARG BASE=docker.io/library/python:3.11-slim

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/app
COPY requirements requirements
RUN /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && /opt/build/bin/pip --python /opt/app/bin/python install --no-cache-dir --require-hashes \
        -r requirements/tier.txt
COPY pyproject.toml README.md LICENSE ./
COPY fencepost fencepost
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/build/bin/pip --python /opt/app/bin/python install --no-cache-dir --no-deps \
        --no-index /wheels/fencepost-*.whl

# kcat, to look at the cluster from beside it: see docker-compose.yml.
FROM ${BASE} AS kcat
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends kcat \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
ENTRYPOINT ["kcat"]

# An S3 in memory for the remote tier, as the profile s3 of docker-compose.yml has it.
FROM ${BASE} AS s3
RUN python3 -m venv /opt/s3
COPY requirements/s3.txt requirements/s3.txt
RUN /opt/s3/bin/pip install --no-cache-dir --require-hashes -r requirements/s3.txt
COPY tools/s3_server.py /opt/s3/s3_server.py
USER 10001:10001
EXPOSE 9000
HEALTHCHECK --interval=2s --timeout=10s --start-period=10s --retries=5 \
    CMD ["/opt/s3/bin/python", "/opt/s3/s3_server.py", "--check"]
ENTRYPOINT ["/opt/s3/bin/python", "/opt/s3/s3_server.py"]
CMD ["tier"]

FROM ${BASE} AS fencepost
COPY --from=build /opt/app /opt/app
ENV PATH=/opt/app/bin:$PATH \
    FENCEPOST_HOST=0.0.0.0 \
    FENCEPOST_CONTROL_HOST=0.0.0.0 \
    FENCEPOST_KAFKA_ENV=true
USER 10001:10001
EXPOSE 9092 9093 9094 9644
HEALTHCHECK --interval=5s --timeout=10s --start-period=5s --retries=3 CMD ["fencepost", "healthcheck"]
ENTRYPOINT ["fencepost"]
CMD ["serve"]
