//! Reporters as sidecars of a real process, one for each kind of check.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::nodegate::fixtures::{daemon_set, rule};
use testkit::nodegate::install::{config, program};
use testkit::realnode::components::{self, agent, agent_folder, set_ready};
use testkit::realnode::images::Image;
use testkit::realnode::inside::alone;
use testkit::realnode::node::options;
use testkit::realnode::{RealNode, Times};

use crate::scene::{Scene, held};

const IMAGE: &str = "realnode.test/nodegate:1";
const NAMESPACED: &str = "default/checked";
const TAINT: &str = "readiness.k8s.io/checked";

/// The kinds of checks, their endpoints, and their results for a process that is not ready.
fn checks(folder: &str) -> [(&'static str, String, &'static str); 6] {
    let of = |endpoint: &str| endpoint.replace("FOLDER", folder);
    [
        ("Http", of("http://localhost:8080/"), "False"),
        ("Grpc", of("grpc://localhost:8081"), "False"),
        ("Tcp", of("tcp://localhost:8080"), "True"),
        ("Unix", of("unix://FOLDER/http.sock"), "True"),
        ("UnixHttp", of("unix://FOLDER/http.sock:/"), "False"),
        ("Exec", of("exec:/pod check FOLDER/ready"), "False"),
    ]
}

fn condition(check: &str) -> String {
    format!("checked.example.com/{check}")
}

fn sidecar(check: &str, endpoint: &str, folder: &str) -> Value {
    json!({
        "name": format!("reporter-{}", check.to_lowercase()),
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/nodegate-reporter"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CHECK_ENDPOINT", "value": endpoint},
            {"name": "CONDITION_TYPE", "value": condition(check)},
            {"name": "CHECK_INTERVAL", "value": "250ms"},
            {"name": "METRICS_BIND_ADDRESS", "value": "0"},
        ],
        "volumeMounts": [{"name": "folder-0", "mountPath": folder}],
    })
}

#[test]
fn every_kind_of_check_reports_on_a_real_process() -> Result<()> {
    alone(async || {
        let folder = agent_folder("checked").to_string_lossy().into_owned();
        let checks = checks(&folder);
        let mut checked = rule("checked", TAINT);
        for (check, ..) in &checks {
            checked = checked.waits_for(&condition(check));
        }
        let scene = Scene::start(options(), vec![checked]).await?;
        scene.cluster.apply_path(&config("reporter")).await?;
        scene
            .cluster
            .account("checked", "nrr-reporter-role")
            .await?;

        let set = daemon_set(NAMESPACED).tolerate_everything().build();
        let mut set = serde_json::to_value(agent(set)?)?;
        let pod = &mut set["spec"]["template"]["spec"];
        pod["serviceAccountName"] = json!("checked");
        if let Some(containers) = pod["containers"].as_array_mut() {
            let sidecars = checks.iter();
            let sidecars = sidecars.map(|(check, endpoint, _)| sidecar(check, endpoint, &folder));
            containers.extend(sidecars);
        }
        components::create(&scene.client, &serde_json::from_value(set)?).await?;

        let image =
            Image::of(IMAGE, "/nodegate-reporter", &program("nodegate-reporter")?)?.with_pod()?;
        let setup = held().taint(TAINT, "NoSchedule").image(image);
        let _real = RealNode::start(&scene.cluster, setup).await?;
        let times = Times::since("the kubelet is started");
        for (check, _, of_unready) in &checks {
            let kind = condition(check);
            scene.condition_turns(&times, &kind, of_unready).await?;
        }
        set_ready("checked", true)?;
        let times = Times::since("the process is ready");
        for (check, ..) in &checks {
            let kind = condition(check);
            scene.condition_turns(&times, &kind, "True").await?;
        }
        scene.is_released(&times, TAINT).await?;
        set_ready("checked", false)?;
        let times = Times::since("the process is not ready any more");
        scene.is_gated(&times, TAINT).await
    })
}
