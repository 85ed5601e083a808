//! An address to listen on, as given on the command line.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::anyhow;
use tokio::net::TcpListener;

/// An address to listen on; `None` turns the server off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

/// Parses an address as Kubernetes components do: `:8081` is every address of the host, `127.0.0.1:8081` is one, `0` is none.
pub fn parse_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(BindAddress(None));
    }
    let host = if text.starts_with(':') { "[::]" } else { "" };
    format!("{host}{text}")
        .parse()
        .map(|address| BindAddress(Some(address)))
        .map_err(|_| "expected [HOST]:PORT, such as :8081 or 127.0.0.1:8081, or 0 for none".into())
}

/// Listens for `what`, which `flag` configures; an error names both and the address. `[::]` is all of the host's, IPv4 and IPv6.
pub async fn listen(address: SocketAddr, what: &str, flag: &str) -> anyhow::Result<TcpListener> {
    let mut listening = TcpListener::bind(address).await;
    if let Err(error) = &listening
        && address.ip() == Ipv6Addr::UNSPECIFIED
        && error.kind() != io::ErrorKind::AddrInUse
    {
        // The kernel has no IPv6.
        listening = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
    }
    listening.map_err(|error| {
        anyhow!("cannot listen on {address} for {what}: {error} (choose another {flag})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_kubernetes_components_do() {
        for (text, expected) in [
            ("0", Ok(None)),
            (":8081", Ok(Some("[::]:8081"))),
            ("0.0.0.0:8081", Ok(Some("0.0.0.0:8081"))),
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
}
