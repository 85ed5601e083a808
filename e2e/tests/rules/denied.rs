//! An admission webhook that denies a rule's writes to a node.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use nodegate_tests::{gates, has_words};
use serde_json::{Value, json};
use testkit::nodegate::eventually;
use testkit::nodegate::state::rule_status;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::{SOON, TEST, client, continuous, eventually_counts, eventually_gated, key, node};

#[tokio::test]
async fn a_webhook_that_denies_one_rules_taint_is_named_and_holds_up_no_other_rule() -> Result<()> {
    let client = client().await?;
    let (url, certificate) = denying(key("denied")).await?;
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let webhook = json!({
        "metadata": {"name": "denied"},
        "webhooks": [{
            "name": "denied.example.com",
            "clientConfig": {"url": url},
            "rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"]}],
            "objectSelector": {"matchLabels": {TEST: "denied"}},
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let mut webhook: ValidatingWebhookConfiguration = serde_json::from_value(webhook)?;
    for it in webhook.webhooks.iter_mut().flatten() {
        it.client_config.ca_bundle = Some(k8s_openapi::ByteString(certificate.clone().into()));
    }
    webhooks.create(&PostParams::default(), &webhook).await?;

    continuous("denied").create(&client).await?;
    continuous("denied-not")
        .selects(TEST, "denied")
        .create(&client)
        .await?;
    node("denied", "denied").create(&client).await?;
    eventually_gated(&client, "denied", "denied-not").await?;
    let message = eventually("the rule that is denied says so", SOON, async || {
        let status = rule_status(&client, "denied").await?;
        let message = status["failedNodes"][0]["message"].as_str();
        Ok(message.map(str::to_owned))
    })
    .await?;
    has_words(&message, "admission webhook")?;
    eventually_counts(&client, "denied-not", [1, 1, 0]).await?;
    let status = rule_status(&client, "denied-not").await?;
    assert_eq!(status["failedNodes"], Value::Null);
    gates::stays_released(&client, "denied", &key("denied")).await?;
    webhooks.delete("denied", &DeleteParams::default()).await?;
    eventually_gated(&client, "denied", "denied").await
}

/// Serves a webhook that denies nodes with a taint of this key, by a 422 without a reason. Returns its URL and certificate.
async fn denying(taint: String) -> Result<(String, String)> {
    let signed = rcgen::generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()])?;
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der());
    let key = key.map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("https://{}/", listener.local_addr()?);
    let taint: Arc<str> = taint.into();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, taint) = (acceptor.clone(), taint.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await?;
                let service = service_fn(move |request| answer(request, taint.clone()));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                connection.await?;
                anyhow::Ok(())
            });
        }
    });
    Ok((url, signed.cert.pem()))
}

async fn answer(
    request: Request<Incoming>,
    taint: Arc<str>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let review = review(request, &taint).await.unwrap_or_default();
    let mut response = Response::new(Full::new(review.to_string().into()));
    let kind = hyper::header::HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, kind);
    Ok(response)
}

async fn review(request: Request<Incoming>, taint: &str) -> Result<Value> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    let uid = review["request"].get("uid").context("a review")?;
    let taints = review["request"]["object"]["spec"]["taints"].as_array();
    let is_denied = taints.into_iter().flatten().any(|it| it["key"] == *taint);
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": uid,
            "allowed": !is_denied,
            "status": {"code": 422, "message": "not this one"},
        },
    }))
}
