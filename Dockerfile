# Two images: `docker build --target operator .` and `docker build --target job .`
#
# BASE_IMAGE is a Debian 12 with Python 3.11 or newer and its venv; name it by digest where builds have to be repeatable.
# Java 17 comes from its packages unless the base brings one. PIP_INDEX_URL and S3SINK_MAVEN_ROOT name mirrors;
# VERSION, REVISION and SOURCE (the address of the repository) are for the labels of a release.
# PIP_CONFIG_FILE, APT_CONFIG and S3SINK_JARS are for builders that mount files of theirs while an image is built.
ARG BASE_IMAGE=docker.io/library/python:3.11-slim-bookworm

# ---- the code of this project: a layer of its own, so that an edit leaves the large ones below it as they are --------
FROM ${BASE_IMAGE} AS code
ARG PIP_INDEX_URL
ARG PIP_CONFIG_FILE
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY container/build.lock container/
RUN python3 -m venv /build && /build/bin/pip install --require-hashes -r container/build.lock
COPY pyproject.toml LICENSE ./
COPY operator operator
COPY sink_job sink_job
# An image needs no long description, so an edit of the README is no reason to build this layer again.
# Compiled once and for good: by hash, not by time, as times change between layers.
RUN touch README.md \
    && /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && python3 -m venv --without-pip /opt/s3sink \
    && /build/bin/pip --python /opt/s3sink/bin/python install --no-deps --no-index --no-compile /dist/*.whl \
    && /opt/s3sink/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/s3sink/lib \
    && chmod -R a+rX /opt/s3sink
COPY container/entrypoint.py /opt/s3sink/

# ---- what the operator needs ---------------------------------------------------------------------------------------
FROM ${BASE_IMAGE} AS operator-packages
ARG PIP_INDEX_URL
ARG PIP_CONFIG_FILE
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY container/build.lock container/operator.lock /src/
RUN python3 -m venv /opt/s3sink \
    && /opt/s3sink/bin/pip install --require-hashes -r /src/build.lock \
    && /opt/s3sink/bin/pip install --require-hashes --no-deps --no-build-isolation --no-compile -r /src/operator.lock \
    && /opt/s3sink/bin/pip uninstall --yes setuptools pip \
    && /opt/s3sink/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/s3sink/lib \
    && chmod -R a+rX /opt/s3sink

# ---- the operator's image ------------------------------------------------------------------------------------------
FROM ${BASE_IMAGE} AS operator
ARG BASE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=""
LABEL org.opencontainers.image.title="s3sink-operator" \
      org.opencontainers.image.description="Runs S3Sink objects" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.vendor="s3sink" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.documentation="${SOURCE}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
RUN echo 's3sink:x:10001:' >> /etc/group && echo 's3sink:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=operator-packages /opt/s3sink /opt/s3sink
COPY --from=code /opt/s3sink /opt/s3sink
ENV PATH=/opt/s3sink/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["s3sink"]
CMD ["operator"]

# ---- Java, for building the job and for running it -----------------------------------------------------------------
FROM ${BASE_IMAGE} AS java
ARG APT_CONFIG
# The package sets up a manual page, whose folder slim images lack.
RUN if ! command -v java || ! command -v tini; then \
        mkdir -p /usr/share/man/man1 \
        && apt-get update \
        && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
        && apt-get clean \
        && rm -rf /var/lib/apt/lists/*; \
    fi

# ---- what the job needs --------------------------------------------------------------------------------------------
FROM java AS job-packages
ARG PIP_INDEX_URL
ARG PIP_CONFIG_FILE
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY container/build.lock container/job.lock /src/
# The archive of classes is known by the times of Spark's files, and layers keep whole seconds.
RUN python3 -m venv /opt/s3sink \
    && /opt/s3sink/bin/pip install --require-hashes -r /src/build.lock \
    && /opt/s3sink/bin/pip install --require-hashes --no-deps --no-build-isolation --no-compile -r /src/job.lock \
    && /opt/s3sink/bin/pip uninstall --yes setuptools pip \
    && /opt/s3sink/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/s3sink/lib \
    && chmod -R a+rX /opt/s3sink \
    && find /opt/s3sink/lib -path '*/pyspark/*' \( -name '*.jar' -o -name __init__.py \) -exec touch -d @0 {} +

# ---- what Spark is to find at a start: Kafka's client and logins with their pinned checksums, an archive of classes --
FROM job-packages AS job-baked
ARG S3SINK_MAVEN_ROOT
ARG S3SINK_JARS
# A builder may give its containers host names that do not resolve; a JVM looks them up.
ENV S3SINK_CACHE=/opt/s3sink/cache PYTHONPATH=/src SPARK_LOCAL_IP=127.0.0.1
COPY sink_job/__init__.py /src/sink_job/
COPY sink_job/api /src/sink_job/api
COPY sink_job/engine /src/sink_job/engine
COPY sink_job/kafka /src/sink_job/kafka
COPY sink_job/spark /src/sink_job/spark
COPY container/prepare_image.py /src/
RUN /opt/s3sink/bin/python /src/prepare_image.py /baked && chmod -R a+rX /baked

# ---- the job's image: drivers and executors ------------------------------------------------------------------------
FROM java AS job
ARG BASE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=""
LABEL org.opencontainers.image.title="s3sink-job" \
      org.opencontainers.image.description="Copies Kafka topics into S3 objects exactly once" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.vendor="s3sink" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.documentation="${SOURCE}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
ARG APT_CONFIG
# Hadoop's client asks for the user's name and fails without one; the library is for uids that the cluster assigns.
RUN echo 's3sink:x:10001:' >> /etc/group && echo 's3sink:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && if ! ls /usr/lib/*/libnss_wrapper.so; then \
        apt-get update \
        && apt-get install --yes --no-install-recommends libnss-wrapper \
        && apt-get clean \
        && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=job-packages /opt/s3sink /opt/s3sink
COPY --from=job-baked /baked /
COPY --from=code /opt/s3sink /opt/s3sink
ENV PATH=/opt/s3sink/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 S3SINK_CACHE=/opt/s3sink/cache
# A JVM silently ignores an archive of other files at each start.
RUN python -c "from sink_job.spark.jars import archive_path, client_jars; assert archive_path(client_jars()).exists()"
WORKDIR /tmp
USER 10001:10001
EXPOSE 8042 7078 7079
ENTRYPOINT ["tini", "-s", "--", "python", "/opt/s3sink/entrypoint.py"]
CMD ["s3sink", "--help"]
