# The image has the binary, certificate authorities, and nothing else.
#
#   docker build --tag registry.example.com/nodegate:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.com/nodegate:0.1.0 --push .

# Always on the machine's own architecture: the other one is cross-compiled.
FROM --platform=$BUILDPLATFORM rust:1.95.0-slim-bookworm AS build
ARG BUILDARCH
ARG TARGETARCH
RUN case "$BUILDARCH-$TARGETARCH" in \
    amd64-arm64) cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
    arm64-amd64) cross="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
    esac \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates gcc libc6-dev $cross \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,id=target-$TARGETARCH \
    binary=$(hack/build-static "$TARGETARCH") && install "$binary" /nodegate

FROM scratch
LABEL org.opencontainers.image.title="Nodegate" \
    org.opencontainers.image.description="Keeps pods off Kubernetes nodes until everything the node needs is really there" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /nodegate /nodegate
USER 65532:65532
ENTRYPOINT ["/nodegate"]
