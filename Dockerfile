# docker build -t logeval . && docker run --rm -v "$PWD:/data" logeval demo --out /data/demo
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps -w /wheel /source

FROM python:3.13-slim
RUN --mount=from=build,source=/wheel,target=/wheel pip install --no-cache-dir /wheel/*.whl
ENV NUMBA_CACHE_DIR=/kernels
RUN logeval demo --no-open --quiet --out /tmp/demo && rm -r /tmp/demo && chmod -R a+rwX /kernels
WORKDIR /data
ENTRYPOINT ["logeval"]
CMD ["--help"]
