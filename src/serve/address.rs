//! An address to listen on, as the command line gives it. What is served there is not known here.

use std::net::SocketAddr;

use tokio::net::TcpListener;

/// An address to listen on, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {what}: {source} (choose another {flag})")]
pub struct ListenError {
    /// What would be served there.
    what: &'static str,
    /// The flag that says where.
    flag: &'static str,
    address: SocketAddr,
    source: std::io::Error,
}

/// Reads an address as Kubernetes components take it: `:8081`, `127.0.0.1:8081`, or `0` for none.
///
/// # Errors
/// When it is neither.
pub fn parse_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(BindAddress(None));
    }
    let full = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .map(|address| BindAddress(Some(address)))
        .map_err(|_| "expected [HOST]:PORT, such as :8081 or 127.0.0.1:8081, or 0 for none".into())
}

/// Listens on an address for `what`; `flag` is the one that gave it.
///
/// # Errors
/// When it cannot be listened on; the message names all three.
pub async fn listen(
    address: SocketAddr,
    what: &'static str,
    flag: &'static str,
) -> Result<TcpListener, ListenError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|source| ListenError {
        what,
        flag,
        address,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_kubernetes_components_do() {
        for (text, expected) in [
            ("0", Ok(None)),
            (":8081", Ok(Some("0.0.0.0:8081"))),
            ("127.0.0.1:0", Ok(Some("127.0.0.1:0"))),
            ("[::1]:8081", Ok(Some("[::1]:8081"))),
            ("8081", Err(())),
            ("localhost:8081", Err(())),
            ("", Err(())),
        ] {
            let expected = expected.map(|address| address.map(|text| text.parse().unwrap()));
            let read = parse_address(text).map(|BindAddress(address)| address);
            assert_eq!(read.map_err(|_| ()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_told_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = listen(address, "tests", "--test-bind-address").await;
        let text = error.unwrap_err().to_string();
        let start = format!("cannot listen on {address} for tests: ");
        assert!(text.starts_with(&start), "{text}");
        assert!(
            text.ends_with("(choose another --test-bind-address)"),
            "{text}"
        );
    }
}
