//! The chart's values: what each changes, and what is refused.

use anyhow::{Result, bail};
use nodegate_testbed::helm::helm;
use nodegate_testbed::install::chart;
use serde_json::{Value, json};

use crate::rendered::{Objects, template};

const DEPLOYMENT: &str = "Deployment nrr-system/nrr-controller-manager";

fn container(objects: &Objects) -> &Value {
    &objects[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
}

#[tokio::test]
async fn values_end_up_where_they_belong() -> Result<()> {
    let digest = "sha256:".to_owned() + &"a".repeat(64);
    for (values, pointer, expected) in [
        (
            "image.repository=registry.example.com/nodegate,image.tag=1.2.3".to_owned(),
            "/spec/template/spec/containers/0/image",
            json!("registry.example.com/nodegate:1.2.3"),
        ),
        (
            format!("image.tag=1.2.3,image.digest={digest}"),
            "/spec/template/spec/containers/0/image",
            json!(format!("nodegate@{digest}")),
        ),
        ("replicas=3".into(), "/spec/replicas", json!(3)),
        (
            "priorityClassName=mine".into(),
            "/spec/template/spec/priorityClassName",
            json!("mine"),
        ),
        (
            "imagePullSecrets[0].name=registry".into(),
            "/spec/template/spec/imagePullSecrets",
            json!([{"name": "registry"}]),
        ),
        (
            "podLabels.team=nodes".into(),
            "/spec/template/metadata/labels/team",
            json!("nodes"),
        ),
    ] {
        let objects = template(&[&values]).await?;
        let seen = objects[DEPLOYMENT].pointer(pointer);
        assert_eq!(seen, Some(&expected), "{values}");
    }
    Ok(())
}

#[tokio::test]
async fn values_become_flags_of_the_controller() -> Result<()> {
    for (values, expected) in [
        (
            "logLevel=debug,logFormat=json",
            &["--zap-log-level=debug", "--log-format=json"][..],
        ),
        (
            "extraArgs={--node-concurrent-reconciles=8}",
            &["--node-concurrent-reconciles=8"],
        ),
        ("webhook.enabled=true", &["--enable-webhook"]),
        (
            "webhook.enabled=true,webhook.certificate=secret,webhook.secretName=mine,webhook.caBundle=Y2E=",
            &[
                "--enable-webhook",
                "--webhook-cert-dir=/etc/nodegate/webhook",
            ],
        ),
        (
            "config.passingTaints={example.com/starting}",
            &["--config=/etc/nodegate/config/config.yaml"],
        ),
    ] {
        let objects = template(&[values]).await?;
        let arguments = &container(&objects)["args"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for flag in expected {
            assert!(arguments.contains(&json!(flag)), "{values}: {arguments:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_off_is_not_rendered() -> Result<()> {
    let all = template(&[]).await?;
    for (values, gone) in [
        (
            "metrics.enabled=false",
            "Service nrr-system/nrr-controller-manager-metrics-service",
        ),
        (
            "podDisruptionBudget.enabled=false",
            "PodDisruptionBudget nrr-system/nrr-controller-manager",
        ),
        (
            "networkPolicy.enabled=false",
            "NetworkPolicy nrr-system/nrr-controller-manager",
        ),
        (
            "birth.enabled=false",
            "MutatingAdmissionPolicy /nrr-gate-at-birth",
        ),
        (
            "resourceQuota.enabled=false",
            "ResourceQuota nrr-system/nrr-critical-pods",
        ),
    ] {
        let objects = template(&[values]).await?;
        assert!(
            all.contains_key(gone) && !objects.contains_key(gone),
            "{values}"
        );
    }
    let objects = template(&["metrics.enabled=false"]).await?;
    let arguments = container(&objects)["args"].to_string();
    assert!(!arguments.contains("metrics"), "{arguments}");
    let policy = &objects["NetworkPolicy nrr-system/nrr-controller-manager"];
    assert_eq!(policy["spec"]["ingress"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn values_that_cannot_be_used_are_refused_by_name() -> Result<()> {
    for (values, expected) in [
        ("replica=3", "additional properties 'replica' not allowed"),
        (
            "webhook.enable=true",
            "at '/webhook': additional properties 'enable' not allowed",
        ),
        (
            "image.tags=x",
            "at '/image': additional properties 'tags' not allowed",
        ),
        (
            "config.passingTaint={a}",
            "at '/config': additional properties 'passingTaint' not allowed",
        ),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("replicas=two", "at '/replicas': got string, want integer"),
        (
            "webhook.certificate=own",
            "at '/webhook/certificate': value must be one of 'self-managed', 'cert-manager', 'secret'",
        ),
        ("webhook.certificate=secret", "at '/webhook/secretName'"),
        ("image.digest=abc", "at '/image/digest'"),
        ("extraArgs={leader-elect}", "at '/extraArgs/0'"),
        (
            "rules.network.taint.key=x",
            "at '/rules/network': missing properties",
        ),
    ] {
        let chart = chart();
        let chart = chart.to_string_lossy();
        let refused = helm(&["template", "nodegate", &chart, "--set", values]).await;
        let Err(error) = refused else {
            bail!("{values} was taken");
        };
        let text = error.to_string();
        let told: Vec<_> = text
            .lines()
            .filter(|line| line.contains(expected))
            .collect();
        assert_eq!(told.len(), 1, "{values}: {text}");
    }
    Ok(())
}
