//! Parses `CHECK_ENDPOINT`. Pure: it resolves and connects to nothing.

use std::fmt;
use std::path::PathBuf;

use hyper::Uri;

/// Every form of an endpoint, for error messages.
const FORMS: &str = "http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp://HOST:PORT, grpc://HOST:PORT[/SERVICE], \
                     unix:///SOCKET[:/PATH] or exec:/PROGRAM ARGUMENTS";
/// Characters that a shell would interpret.
const SHELL_CHARACTERS: &[char] = &['"', '\'', '\\', '|', '&', ';', '<', '>', '$', '`', '*'];

/// Something that can be checked. Displayed as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    text: String,
    pub(super) check: EndpointCheck,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointCheck {
    /// A GET request; any 2xx answer is good.
    Http(HttpRequest),
    /// The gRPC health protocol; `SERVING` is good.
    Grpc {
        target: EndpointAddress,
        authority: String,
        /// Empty for the server as a whole.
        service: String,
    },
    /// A connection; accepting it is good.
    Connect(EndpointAddress),
    /// A program; exit code 0 is good.
    Command {
        /// An absolute path.
        program: PathBuf,
        arguments: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) target: EndpointAddress,
    pub(super) tls: bool,
    /// The `Host` header.
    pub(super) authority: String,
    /// With the query.
    pub(super) path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointAddress {
    Tcp {
        /// A name or an address, without the brackets of IPv6.
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

/// Why a text is not an endpoint; continues a sentence that starts with the variable's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("is {0:?}, which starts with no known scheme; write {FORMS}")]
    Scheme(String),
    #[error("is {0:?}, which is no address of the form {1}")]
    Form(String, &'static str),
    /// The condition's message would show the password to everyone who may read Nodes.
    #[error("must not contain a user or password: conditions can be read by many")]
    Password,
    #[error(
        "is {0:?}; name the program by its absolute path, as in exec:/usr/local/bin/check --fast"
    )]
    Relative(String),
    #[error(
        "has {0:?}, but no shell reads it: words are split at spaces; put the command into a script and name that"
    )]
    Shell(char),
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Result<Self, EndpointError> {
        let unknown = || EndpointError::Scheme(text.to_owned());
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        let check = match scheme {
            "http" | "https" => http(text, scheme == "https")?,
            "grpc" => grpc(text)?,
            "tcp" => tcp(text)?,
            "unix" => unix(text, rest)?,
            "exec" => command(text, rest)?,
            _ => return Err(unknown()),
        };
        Ok(Self {
            text: text.to_owned(),
            check,
        })
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(&self.check, EndpointCheck::Http(request) if request.tls)
    }

    /// Whether the endpoint is on this host: it has a loopback name or address, or none at all.
    pub(super) fn is_loopback(&self) -> bool {
        let (EndpointCheck::Http(HttpRequest { target, .. })
        | EndpointCheck::Grpc { target, .. }
        | EndpointCheck::Connect(target)) = &self.check
        else {
            return true;
        };
        match target {
            EndpointAddress::Unix(_) => true,
            EndpointAddress::Tcp { host, .. } => {
                host == "localhost"
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn http(text: &str, tls: bool) -> Result<EndpointCheck, EndpointError> {
    let form = if tls {
        "https://HOST[:PORT][/PATH]"
    } else {
        "http://HOST[:PORT][/PATH]"
    };
    let uri = address(text, form)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(EndpointCheck::Http(HttpRequest {
        target: target(&uri, Some(if tls { 443 } else { 80 }), text, form)?,
        tls,
        authority: authority(&uri),
        path: path.to_owned(),
    }))
}

fn grpc(text: &str) -> Result<EndpointCheck, EndpointError> {
    let form = "grpc://HOST:PORT[/SERVICE]";
    let uri = address(text, form)?;
    if uri.query().is_some() {
        return Err(EndpointError::Form(text.to_owned(), form));
    }
    Ok(EndpointCheck::Grpc {
        target: target(&uri, None, text, form)?,
        authority: authority(&uri),
        service: uri.path().trim_start_matches('/').to_owned(),
    })
}

fn tcp(text: &str) -> Result<EndpointCheck, EndpointError> {
    let form = "tcp://HOST:PORT";
    let uri = address(text, form)?;
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(EndpointError::Form(text.to_owned(), form));
    }
    target(&uri, None, text, form).map(EndpointCheck::Connect)
}

fn unix(text: &str, rest: &str) -> Result<EndpointCheck, EndpointError> {
    let wrong = || EndpointError::Form(text.to_owned(), "unix:///SOCKET[:/PATH]");
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (socket, path) = match rest.split_once(':') {
        Some((socket, path)) => (socket, Some(path)),
        None => (rest, None),
    };
    if !socket.starts_with('/') || socket.len() < 2 {
        return Err(wrong());
    }
    let target = EndpointAddress::Unix(socket.into());
    let Some(path) = path else {
        return Ok(EndpointCheck::Connect(target));
    };
    if !path.starts_with('/') || path.parse::<Uri>().is_err() {
        return Err(wrong());
    }
    Ok(EndpointCheck::Http(HttpRequest {
        target,
        tls: false,
        authority: "localhost".to_owned(),
        path: path.to_owned(),
    }))
}

fn command(text: &str, rest: &str) -> Result<EndpointCheck, EndpointError> {
    if let Some(found) = rest.chars().find(|c| SHELL_CHARACTERS.contains(c)) {
        return Err(EndpointError::Shell(found));
    }
    let mut words = rest.split_whitespace();
    let program = words.next().filter(|program| program.starts_with('/'));
    let program = program.ok_or_else(|| EndpointError::Relative(text.to_owned()))?;
    Ok(EndpointCheck::Command {
        program: program.into(),
        arguments: words.map(str::to_owned).collect(),
    })
}

/// Parses an address that has a host.
fn address(text: &str, form: &'static str) -> Result<Uri, EndpointError> {
    let wrong = || EndpointError::Form(text.to_owned(), form);
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err(EndpointError::Password);
    }
    Ok(uri)
}

fn target(
    uri: &Uri,
    default_port: Option<u16>,
    text: &str,
    form: &'static str,
) -> Result<EndpointAddress, EndpointError> {
    let wrong = || EndpointError::Form(text.to_owned(), form);
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // `port_u16` is also `None` for a port that is not a number, which must not become the default.
    let has_port = authority(uri).len() > uri.host().unwrap_or_default().len();
    let port = match uri.port_u16() {
        None if has_port => None,
        port => port.or(default_port),
    };
    match port {
        Some(port) if !host.is_empty() && port > 0 => Ok(EndpointAddress::Tcp {
            host: host.to_owned(),
            port,
        }),
        _ => Err(wrong()),
    }
}

fn authority(uri: &Uri) -> String {
    uri.authority()
        .map_or_else(String::new, |authority| authority.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_target(host: &str, port: u16) -> EndpointAddress {
        EndpointAddress::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    fn http_check(host: &str, port: u16, tls: bool, authority: &str, path: &str) -> EndpointCheck {
        EndpointCheck::Http(HttpRequest {
            target: tcp_target(host, port),
            tls,
            authority: authority.to_owned(),
            path: path.to_owned(),
        })
    }

    #[test]
    fn every_form_of_an_endpoint_is_read() {
        let grpc = |host, port, authority: &str, service: &str| EndpointCheck::Grpc {
            target: tcp_target(host, port),
            authority: authority.to_owned(),
            service: service.to_owned(),
        };
        for (text, expected) in [
            (
                "http://localhost:9099/readiness",
                http_check("localhost", 9099, false, "localhost:9099", "/readiness"),
            ),
            (
                "http://node.local",
                http_check("node.local", 80, false, "node.local", "/"),
            ),
            (
                "https://[::1]/ready?full=1",
                http_check("::1", 443, true, "[::1]", "/ready?full=1"),
            ),
            (
                "tcp://127.0.0.1:53",
                EndpointCheck::Connect(tcp_target("127.0.0.1", 53)),
            ),
            (
                "tcp://[::1]:53",
                EndpointCheck::Connect(tcp_target("::1", 53)),
            ),
            (
                "grpc://localhost:9000",
                grpc("localhost", 9000, "localhost:9000", ""),
            ),
            (
                "grpc://localhost:9000/my.Service",
                grpc("localhost", 9000, "localhost:9000", "my.Service"),
            ),
            (
                "unix:///run/agent.sock",
                EndpointCheck::Connect(EndpointAddress::Unix("/run/agent.sock".into())),
            ),
            (
                "unix:/run/agent.sock",
                EndpointCheck::Connect(EndpointAddress::Unix("/run/agent.sock".into())),
            ),
            (
                "unix:///run/agent.sock:/v1/healthz?brief",
                EndpointCheck::Http(HttpRequest {
                    target: EndpointAddress::Unix("/run/agent.sock".into()),
                    tls: false,
                    authority: "localhost".to_owned(),
                    path: "/v1/healthz?brief".to_owned(),
                }),
            ),
            (
                "exec:/usr/bin/nvidia-smi -L  --id=0",
                EndpointCheck::Command {
                    program: "/usr/bin/nvidia-smi".into(),
                    arguments: vec!["-L".to_owned(), "--id=0".to_owned()],
                },
            ),
        ] {
            let read = Endpoint::parse(text);
            assert_eq!(read.as_ref().map(|read| &read.check), Ok(&expected));
            assert_eq!(read.unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_endpoint_is_an_error_that_says_why() {
        for (text, words) in [
            ("localhost:9099/ready", "no known scheme; write http://"),
            ("/healthz", "no known scheme"),
            ("ftp://localhost/", "no known scheme"),
            ("http://", "no address of the form http://HOST"),
            ("http://:80/", "no address"),
            ("http://localhost:port/", "no address"),
            ("http://localhost:99999/", "no address"),
            ("http://user:secret@localhost/", "user or password"),
            ("tcp://localhost", "of the form tcp://HOST:PORT"),
            ("tcp://localhost:0", "no address"),
            ("tcp://localhost:53/path", "no address"),
            ("grpc://localhost", "of the form grpc://HOST:PORT[/SERVICE]"),
            ("unix://", "of the form unix:///SOCKET"),
            ("unix://relative.sock", "of the form unix:///SOCKET"),
            ("unix:///run/a.sock:healthz", "of the form unix:///SOCKET"),
            ("exec:check", "by its absolute path"),
            ("exec:", "by its absolute path"),
            ("exec:/bin/sh -c 'true'", "no shell reads it"),
            ("exec:/bin/true | cat", "no shell reads it"),
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(
                !error.contains("secret") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn loopback_is_told_from_the_network() {
        for (text, expected) in [
            ("https://localhost/", true),
            ("https://127.0.0.2:8443/", true),
            ("https://[::1]:8443/", true),
            ("unix:///run/agent.sock", true),
            ("https://10.0.0.1/", false),
            ("https://localhost.example.com/", false),
        ] {
            assert_eq!(
                Endpoint::parse(text).unwrap().is_loopback(),
                expected,
                "{text}"
            );
        }
    }
}
