# The image, for who has a container engine and neither Rust nor Go: docker build --tag REGISTRY/nodegate:0.1.0 .
# A release's image is made without an engine (hack/image) and has the same programs.
FROM rust:1.95.0-alpine AS build
RUN apk add --no-cache gcc musl-dev
# Not the channel of rust-toolchain.toml, which would be fetched anew.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /nodegate
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/nodegate/target \
    cargo build --release --locked --package nodegate-controller --package nodegate-reporter && \
    mkdir /image && cp target/release/nodegate-controller target/release/nodegate-reporter /image/ && \
    ln -s nodegate-controller /image/manager

FROM gcr.io/distroless/static:nonroot
COPY --from=build /image/ /
# By number, which is what runAsNonRoot needs where nothing else names a user.
USER 65532:65532
ENTRYPOINT ["/nodegate-controller"]
