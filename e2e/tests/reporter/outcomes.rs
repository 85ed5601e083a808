//! Each kind of check, with success and with failure, and the resulting condition.

use anyhow::{Context, Result, ensure};
use testkit::nodegate::{eventually, ports};

use crate::endpoints::{Answer, Server, grpc, http_on_a_unix_socket, script, status};
use crate::{BROKEN, NO_ANSWER, NOT_READY, OK, SOON, World};

#[tokio::test]
async fn http_answers_become_the_statuses_and_reasons_that_users_know() -> Result<()> {
    let world = World::new("http").await?;
    let server = Server::http(status("200 OK")).await?;
    let reporter = world.report(&server.url("/readiness"), &[])?;
    let moved = |to: &str| Answer::Http(format!("302 Found\r\nLocation: {to}"), String::new());
    let unavailable = Answer::Http("503 Service Unavailable".into(), "no\n BGP  peers".into());
    #[rustfmt::skip]
    let cases = [
        (status("200 OK"), OK, "answered 200 OK"),
        (unavailable, NOT_READY, "answered 503 Service Unavailable: no BGP peers"),
        (status("204 No Content"), OK, "answered 204"),
        (status("500 Internal Server Error"), NOT_READY, "answered 500"),
        // The reporter does not wait for the body after a good status.
        (Answer::Raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), OK, "answered 200 OK"),
        (status("404 Not Found"), NOT_READY, "answered 404"),
        (Answer::Nothing, NO_ANSWER, "did not answer"),
        (status("201 Created"), OK, "answered 201"),
        (Answer::Raw("SSH-2.0-OpenSSH_9.9\r\n"), NO_ANSWER, "did not answer"),
        (moved("/readiness"), NOT_READY, "redirects more than 10 times"),
        (moved("http://elsewhere.example/"), NOT_READY, "not on the same host"),
        (Answer::Silence, NO_ANSWER, "did not answer within 2s"),
    ];
    for (answer, expected, words) in cases {
        // Starts from the opposite status: a change of the message alone is not written at once.
        let (before, because) = match expected {
            OK => (Answer::Nothing, NO_ANSWER),
            _ => (status("200 OK"), OK),
        };
        server.set(before);
        world.reports(because).await?;
        server.set(answer);
        let message = world.reports_that(expected, words).await?;
        let start = server.url("/readiness");
        ensure!(message.starts_with(&start), "{message}");
    }
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn a_connection_that_is_refused_is_no_answer_and_heals_by_itself() -> Result<()> {
    let world = World::new("tcp").await?;
    let port = ports::free()?;
    let endpoint = format!("tcp://localhost:{port}");
    let reporter = world.report(&endpoint, &[])?;
    let refused = "cannot be connected to";
    world.reports_that(NO_ANSWER, refused).await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    world.reports(OK).await?;
    drop(listener);
    world.reports(NO_ANSWER).await?;
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn https_is_verified_unless_it_is_on_localhost_and_that_is_asked_for() -> Result<()> {
    let world = World::new("https").await?;
    // A server with a certificate of a private authority: the API server itself.
    let kubeconfig = std::fs::read_to_string(world.cluster.kubeconfig())?;
    let kubeconfig: serde_json::Value = serde_json::from_str(&kubeconfig)?;
    let server = &kubeconfig["clusters"][0]["cluster"]["server"];
    let endpoint = format!("{}/livez", server.as_str().context("no server")?);
    let file = |name: &str, pem: &str| {
        let path = world.cluster.folder().join(name);
        std::fs::write(&path, pem)?;
        anyhow::Ok(path.to_string_lossy().into_owned())
    };
    let ca = file("check-ca.crt", world.cluster.ca())?;
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let other = file("check-other-ca.crt", &other.cert.pem())?;

    let reporter = world.report(&endpoint, &[("CHECK_CA_FILE", &other)])?;
    let refused = "cannot be connected to: invalid peer certificate";
    world.reports_that(NO_ANSWER, refused).await?;
    drop(reporter);
    let reporter = world.report(&endpoint, &[("CHECK_CA_FILE", &ca)])?;
    world.reports(OK).await?;
    drop(reporter);
    let unknown = endpoint.replace("/livez", "/unknown");
    let reporter = world.report(&unknown, &[("CHECK_SKIP_TLS_VERIFY", "true")])?;
    world.reports(NOT_READY).await?;
    drop(reporter);
    let reporter = world.report(&endpoint, &[("CHECK_SKIP_TLS_VERIFY", "true")])?;
    world.reports(OK).await?;
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn grpc_health_is_understood() -> Result<()> {
    let world = World::new("grpc").await?;
    // A server that is not ours: etcd.
    let etcd = world.cluster.store();
    let http = Server::http(status("200 OK")).await?;
    let (serving, other, odd) = (grpc(1).await?, grpc(2).await?, grpc(9).await?);
    #[rustfmt::skip]
    let cases = [
        (format!("grpc://{etcd}"), OK, "answered SERVING"),
        (format!("grpc://{etcd}/no.such.Service"), NOT_READY, "does not know this service"),
        (format!("grpc://{serving}/my.Service"), OK, "answered SERVING"),
        (format!("grpc://{other}"), NOT_READY, "answered NOT_SERVING"),
        (format!("grpc://{serving}"), OK, "answered SERVING"),
        (format!("grpc://{odd}"), BROKEN, "something else than a health status"),
        (format!("grpc://{}", http.address), NO_ANSWER, "did not answer as gRPC"),
    ];
    for (endpoint, expected, words) in cases {
        let reporter = world.report(&endpoint, &[])?;
        let reported = world.reports_that(expected, words).await;
        reported.with_context(|| endpoint)?;
        drop(reporter);
    }
    Ok(())
}

#[tokio::test]
async fn unix_sockets_are_checked_with_and_without_http() -> Result<()> {
    let world = World::new("unix").await?;
    let socket = world.cluster.folder().join("agent.sock");
    let endpoint = format!("unix://{}", socket.display());
    let reporter = world.report(&endpoint, &[])?;
    world.reports(NO_ANSWER).await?;
    http_on_a_unix_socket(&socket)?;
    world.reports(OK).await?;
    drop(reporter);
    let reporter = world.report(
        &format!("{endpoint}:/healthz"),
        &[("FAILURE_THRESHOLD", "1")],
    )?;
    reporter.says("starting", SOON).await?;
    std::fs::remove_file(&socket)?;
    world.reports(NO_ANSWER).await?;
    http_on_a_unix_socket(&socket)?;
    let condition = world.reports(OK).await?;
    let message = condition.message.unwrap_or_default();
    ensure!(message.ends_with("/healthz answered 200 OK"), "{message}");
    drop(reporter);
    Ok(())
}

#[tokio::test]
async fn commands_are_run_and_killed_with_all_they_have_started_when_they_hang() -> Result<()> {
    let world = World::new("exec").await?;
    let folder = world.cluster.folder();
    let pids = folder.join("exec-pids");
    let hanging = format!("sleep 120 & echo $! > {}; wait", pids.display());
    #[rustfmt::skip]
    let cases = [
        ("well", "exit 0".to_owned(), OK, "succeeded"),
        ("unwell", "echo no GPU on $1 >&2; exit 3".to_owned(), NOT_READY, "failed with exit code 3: no GPU on slot"),
        ("hanging", hanging, NO_ANSWER, "did not answer within 1s"),
    ];
    for (name, text, expected, words) in cases {
        let path = script(folder, name, &text)?;
        let endpoint = format!("exec:{} slot 1", path.display());
        let reporter = world.report(
            &endpoint,
            &[("CHECK_TIMEOUT", "1s"), ("PATH", "/usr/bin:/bin")],
        )?;
        world.reports_that(expected, words).await?;
        if name == "hanging" {
            let pid = std::fs::read_to_string(&pids)?;
            eventually("what it had started is killed", SOON, async || {
                Ok(is_over(pid.trim()))
            })
            .await?;
        }
        drop(reporter);
    }
    let endpoint = format!("exec:{}/no-such-program", folder.display());
    let reporter = world.report(&endpoint, &[])?;
    world.reports(BROKEN).await?;
    drop(reporter);
    Ok(())
}

/// Whether a process has ended, even if it is still a zombie.
fn is_over(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}
