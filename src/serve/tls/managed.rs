//! The webhook's certificate when no files provide one. All replicas share it in a Secret; the first replica to act makes or renews
//! it, and writes its CA to the webhook's configuration, which also has the names by which the API server calls. A renewal replaces
//! the CA too; the previous CA stays trusted for one more round, because a replica may still serve the previous certificate.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::http::Uri;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tracing::{info, warn};

use super::certificate::{CHAIN, KEY, ServingCertificate, issue};
use super::serving::Certificates;
use nodegate_cluster::{client, with_causes};

const SECRET: &str = "nrr-webhook-server-cert";
/// The configuration by which the API server knows the webhook.
const CONFIGURATION: &str = "nrr-validating-webhook-configuration";
/// The label of a Secret that Nodegate may write. `app.kubernetes.io/managed-by` belongs to whoever installs it.
const MARK: (&str, &str) = ("nodegate.dev/certificate", "webhook");
const CA: &str = "ca.crt";

const DAY: Duration = Duration::from_secs(24 * 3600);
const LIFETIME: Duration = DAY.saturating_mul(90);
/// How long before expiry a certificate is renewed.
const RENEW_BEFORE: Duration = DAY.saturating_mul(30);

/// How long the API server may take to trust a new CA.
const TRUST_DELAY: Duration = Duration::from_secs(3);
/// How often the Secret and the configuration are read.
const INTERVAL: Duration = Duration::from_secs(5);
/// How soon they are read again after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How soon they are read again when another replica wrote first.
const SHORTLY: Duration = Duration::from_millis(100);
const DEADLINE: Duration = Duration::from_secs(10);

pub struct ManagedCertificate {
    /// The Secret's namespace and name.
    secret: String,
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    certificates: Certificates,
    /// The next certificate, and when this process first saw its CA in the configuration, which is later than it was written.
    pending: Option<(ServingCertificate, Instant)>,
}

#[derive(Debug)]
enum Failure {
    /// Another replica wrote first: read what it wrote.
    Outrun,
    Problem(String),
}

impl ManagedCertificate {
    /// Keeps the certificate in this namespace's Secret current while the process lives. Until there is one, the result says why.
    pub fn follow(client: &Client, namespace: &str) -> Certificates {
        let certificates =
            Certificates::new(Err("the webhook's certificate has not been read yet".into()));
        let managed = Self {
            secret: format!("{namespace}/{SECRET}"),
            secrets: Api::namespaced(client.clone(), namespace),
            configurations: Api::all(client.clone()),
            certificates: certificates.clone(),
            pending: None,
        };
        tokio::spawn(managed.keep());
        certificates
    }

    async fn keep(mut self) {
        let mut problem = None;
        loop {
            let pause = match self.reconcile(Timestamp::now()).await {
                Ok(pause) => {
                    if problem.take().is_some() {
                        info!("the webhook's certificate is in order again");
                    }
                    pause
                }
                Err(Failure::Outrun) => SHORTLY,
                Err(Failure::Problem(error)) => {
                    let current = self.certificates.current();
                    if current.is_some_and(|it| it.has_expired(Timestamp::now())) {
                        let expired = format!("the certificate has expired: {error}");
                        self.certificates.set(Err(expired));
                    } else {
                        self.certificates.explain(error.clone());
                    }
                    if problem.as_ref() != Some(&error) {
                        warn!("cannot keep the webhook's certificate: {error}; trying again");
                        problem = Some(error);
                    }
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Brings the Secret, the configuration and the served certificate in line, once. Returns the wait until the next time.
    async fn reconcile(&mut self, now: Timestamp) -> Result<Duration, Failure> {
        let what = format!("read ValidatingWebhookConfiguration {CONFIGURATION}");
        let configuration = request(&what, self.configurations.get(CONFIGURATION)).await?;
        let names = names(&configuration);
        if names.is_empty() {
            return Err(Failure::Problem(format!(
                "ValidatingWebhookConfiguration {CONFIGURATION} names neither a service nor a URL to call: install it with \
                 `kubectl apply -k config/webhook`"
            )));
        }
        let what = format!("read Secret {}", self.secret);
        let secret = request(&what, self.secrets.get(SECRET)).await?;
        if is_foreign(&secret) {
            return Err(Failure::Problem(format!(
                "Secret {} is somebody else's: serve from it with --webhook-cert-dir, or delete it and make Nodegate's with \
                 `kubectl apply -k config/webhook`",
                self.secret
            )));
        }
        let stored = match stored(&secret) {
            Some(stored) if is_current(&stored, &names, now) => stored,
            outdated => self.renew(secret, outdated, &names, now).await?,
        };
        self.publish(&configuration, &stored.ca).await?;
        let current = self.certificates.current();
        // An API server without the new CA still trusts the certificate in use. Another replica may have written the CA just now.
        let pending = &mut self.pending;
        let wait = handover(pending, current.as_ref(), &stored, Instant::now());
        if !wait.is_zero() {
            return Ok(wait);
        }
        if current.as_ref() != Some(&stored) {
            info!(secret = self.secret, "certificate loaded");
            self.certificates.set(Ok(stored));
        }
        Ok(INTERVAL)
    }

    /// Makes a certificate and writes it to the Secret, unless another replica writes first.
    async fn renew(
        &self,
        secret: Secret,
        outdated: Option<ServingCertificate>,
        names: &[String],
        now: Timestamp,
    ) -> Result<ServingCertificate, Failure> {
        let issued = issue(names, now, LIFETIME);
        let mut issued = issued.map_err(|error| Failure::Problem(error.to_string()))?;
        issued.ca = bundle(&issued.ca, outdated.as_ref().map(|it| it.ca.as_str()));
        let object = filled(secret, &issued);
        let params = PostParams::default();
        let what = format!("write Secret {}", self.secret);
        request(&what, self.secrets.replace(SECRET, &params, &object)).await?;
        let names = names.join(",");
        info!(secret = self.secret, names, "certificate made");
        Ok(issued)
    }

    /// Writes the CA to the webhooks that lack it.
    async fn publish(
        &self,
        configuration: &ValidatingWebhookConfiguration,
        ca: &str,
    ) -> Result<(), Failure> {
        let ca = ByteString(ca.as_bytes().to_vec());
        let webhooks = configuration.webhooks.iter().flatten();
        let lacking = webhooks.filter(|it| it.client_config.ca_bundle.as_ref() != Some(&ca));
        let patches = lacking.map(|it| json!({"name": it.name, "clientConfig": {"caBundle": ca}}));
        let webhooks: Vec<_> = patches.collect();
        if webhooks.is_empty() {
            return Ok(());
        }
        // The resource version keeps the patch from restoring a webhook that was just removed.
        let patch = Patch::Strategic(json!({
            "metadata": {"resourceVersion": configuration.metadata.resource_version},
            "webhooks": webhooks,
        }));
        let what = format!("write the CA to ValidatingWebhookConfiguration {CONFIGURATION}");
        let params = PatchParams::default();
        let patched = self.configurations.patch(CONFIGURATION, &params, &patch);
        request(&what, patched).await?;
        info!("CA written to ValidatingWebhookConfiguration {CONFIGURATION}");
        Ok(())
    }
}

/// The Secret's content, if it can be used.
fn stored(secret: &Secret) -> Option<ServingCertificate> {
    let data = secret.data.as_ref()?;
    let entry = |key: &str| Some(data.get(key)?.0.clone());
    let ca = String::from_utf8(entry(CA)?).ok()?;
    ServingCertificate::from_pem(ca, entry(CHAIN)?, entry(KEY)?).ok()
}

/// Whether the certificate can be served now and need not be renewed yet.
fn is_current(stored: &ServingCertificate, names: &[String], now: Timestamp) -> bool {
    stored.is_good_for(names, now) && stored.is_good_for(names, now + RENEW_BEFORE)
}

/// The new CA, followed by the latest earlier one.
fn bundle(ca: &str, earlier: Option<&str>) -> String {
    const END: &str = "-----END CERTIFICATE-----\n";
    let latest = earlier.and_then(|earlier| earlier.split_inclusive(END).next());
    format!("{ca}{}", latest.unwrap_or_default())
}

/// The Secret with this certificate; its other content stays.
fn filled(mut secret: Secret, issued: &ServingCertificate) -> Secret {
    let entry = |key: &str, pem: &[u8]| (key.to_owned(), ByteString(pem.to_vec()));
    secret.data.get_or_insert_default().extend([
        entry(CA, issued.ca.as_bytes()),
        entry(CHAIN, &issued.chain),
        entry(KEY, &issued.key),
    ]);
    secret
}

fn is_foreign(secret: &Secret) -> bool {
    secret.labels().get(MARK.0).is_none_or(|it| it != MARK.1)
}

/// The names by which the API server calls the webhooks, and which it verifies in the certificate.
fn names(configuration: &ValidatingWebhookConfiguration) -> Vec<String> {
    let webhooks = configuration.webhooks.iter().flatten();
    let names: BTreeSet<_> = webhooks.filter_map(|it| name(&it.client_config)).collect();
    names.into_iter().collect()
}

fn name(client: &WebhookClientConfig) -> Option<String> {
    if let Some(service) = &client.service {
        return Some(format!("{}.{}.svc", service.name, service.namespace));
    }
    let url: Uri = client.url.as_ref()?.parse().ok()?;
    let host = url.host()?;
    // A URL puts an IPv6 address in brackets.
    Some(host.trim_matches(['[', ']']).to_owned())
}

/// One request to the API server, with a deadline and an error that says what to do.
async fn request<T>(
    what: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    let problem = match client::in_time(DEADLINE, request).await {
        Ok(answer) => return Ok(answer),
        Err(kube::Error::Api(status)) if status.code == 409 => return Err(Failure::Outrun),
        Err(kube::Error::Api(status)) => {
            let remedy = match status.code {
                401 => ": check the kubeconfig's credentials",
                403 | 404 => ": install config/webhook with `kubectl apply -k config/webhook`",
                _ => "",
            };
            format!("cannot {what} ({}){remedy}", status.message)
        }
        Err(error) => format!(
            "cannot reach the API server to {what}: {}",
            with_causes(&error)
        ),
    };
    Err(Failure::Problem(problem))
}

/// How long to wait before `next`, whose CA is now in the configuration, replaces `current`: clients need time to trust it. Zero
/// without a `current`: an untrusted certificate is no worse than none. Pure.
fn handover<C: PartialEq + Clone>(
    pending: &mut Option<(C, Instant)>,
    current: Option<&C>,
    next: &C,
    now: Instant,
) -> Duration {
    let known = pending.take().filter(|(known, _)| known == next);
    if current.is_none_or(|current| current == next) {
        return Duration::ZERO;
    }
    let (_, since) = pending.insert(known.unwrap_or_else(|| (next.clone(), now)));
    TRUST_DELAY.saturating_sub(now.saturating_duration_since(*since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::admissionregistration::v1::{ServiceReference, ValidatingWebhook};

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn issued(name: &str) -> ServingCertificate {
        issue(&[name.to_owned()], now(), LIFETIME).unwrap()
    }

    #[test]
    fn the_names_are_those_that_the_api_server_calls() {
        let service = WebhookClientConfig {
            service: Some(ServiceReference {
                name: "s".into(),
                namespace: "n".into(),
                ..ServiceReference::default()
            }),
            ..WebhookClientConfig::default()
        };
        let url = |url: &str| WebhookClientConfig {
            url: Some(url.into()),
            ..WebhookClientConfig::default()
        };
        for (client, expected) in [
            (service, Some("s.n.svc")),
            (url("https://127.0.0.1:9443/path"), Some("127.0.0.1")),
            (url("https://[::1]:9443/path"), Some("::1")),
            (url("https://webhook.example/path"), Some("webhook.example")),
            (WebhookClientConfig::default(), None),
        ] {
            let configuration = ValidatingWebhookConfiguration {
                webhooks: Some(vec![
                    ValidatingWebhook {
                        client_config: client,
                        ..ValidatingWebhook::default()
                    };
                    2
                ]),
                ..ValidatingWebhookConfiguration::default()
            };
            let expected: Vec<_> = expected.into_iter().map(ToOwned::to_owned).collect();
            assert_eq!(names(&configuration), expected);
        }
    }

    #[test]
    fn what_is_stored_is_used_until_a_third_of_its_life_is_left() {
        let names = ["a.example".to_owned()];
        let issued = issued("a.example");
        let stored = stored(&filled(Secret::default(), &issued)).unwrap();
        for (days, names, expected) in [
            (0, &names[..], true),
            (59, &names, true),
            (61, &names, false),
            (100, &names, false),
            (0, &["b.example".to_owned()], false),
        ] {
            let good = is_current(&stored, names, now() + DAY.saturating_mul(days));
            assert_eq!(good, expected, "{days} {names:?}");
        }
    }

    #[test]
    fn a_secret_that_cannot_be_used_counts_as_none() {
        let (one, other) = (issued("a.example"), issued("a.example"));
        let mixed = ServingCertificate {
            key: other.key,
            ..one
        };
        assert!(stored(&filled(Secret::default(), &mixed)).is_none());
        assert!(stored(&Secret::default()).is_none());
    }

    #[test]
    fn a_secret_is_filled_in_and_keeps_what_else_it_has() {
        let manifest = include_str!("../../../charts/nodegate/files/webhook/secret.yaml");
        let mut installed: Secret = serde_saphyr::from_str(manifest).unwrap();
        assert_eq!(installed.metadata.name.as_deref(), Some(SECRET));
        assert!(!is_foreign(&installed));
        assert!(is_foreign(&Secret::default()));
        assert!(stored(&installed).is_none());
        installed.metadata.resource_version = Some("7".into());
        let issued = issued("a.example");
        let written = filled(installed.clone(), &issued);
        assert!(stored(&written).is_some());
        assert_eq!(written.metadata, installed.metadata);
        assert_eq!(written.type_, installed.type_);
    }

    #[test]
    fn an_earlier_certificate_is_believed_for_one_more_round() {
        let names = ["a.example".to_owned()];
        let rounds = [
            issued("a.example"),
            issued("a.example"),
            issued("a.example"),
        ];
        let mut trusted = String::new();
        for round in &rounds {
            trusted = bundle(&round.ca, Some(&trusted));
        }
        let believed: Vec<_> = rounds
            .iter()
            .map(|round| {
                let certificate = ServingCertificate {
                    ca: trusted.clone(),
                    ..round.clone()
                };
                certificate.is_good_for(&names, now())
            })
            .collect();
        assert_eq!(believed, [false, true, true]);
    }

    #[test]
    fn a_certificate_waits_until_its_ca_has_been_known_for_a_while() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut pending = None;
        for (what, at, current, next, expected) in [
            ("the first one is served at once", 0, None, "a", 0),
            ("the one in use", 10, Some("a"), "a", 0),
            ("another one, whoever made it", 10, Some("a"), "b", 3),
            ("a moment later", 12, Some("a"), "b", 1),
            ("yet another one", 13, Some("a"), "c", 3),
            ("back to the one before", 14, Some("a"), "b", 3),
            ("in time", 17, Some("a"), "b", 0),
            ("in use", 18, Some("b"), "b", 0),
            ("the next round", 100, Some("b"), "c", 3),
        ] {
            let waits = handover(&mut pending, current.as_ref(), &next, start + at * second);
            assert_eq!(waits, expected * second, "{what}");
        }
    }
}
