//! Parses `CHECK_ENDPOINT`. Pure: it resolves and connects to nothing.

use std::fmt;
use std::path::PathBuf;

use hyper::Uri;

/// Every form of an endpoint, for error messages.
const FORMS: &str = "http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp://HOST:PORT, grpc://HOST:PORT[/SERVICE], \
                     unix:///SOCKET[:/PATH] or exec:/PROGRAM ARGUMENTS";
const TCP: &str = "tcp://HOST:PORT";
const SHELL_CHARACTERS: &[char] = &['"', '\'', '\\', '|', '&', ';', '<', '>', '$', '`', '*'];

/// Something that can be checked. Displayed as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    text: String,
    pub(super) check: EndpointCheck,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointCheck {
    /// A GET request, over TCP or through a Unix socket; any 2xx answer is good.
    Http { uri: Uri, socket: Option<PathBuf> },
    /// The gRPC health protocol; `SERVING` is good.
    Grpc {
        authority: String,
        /// Empty for the server as a whole.
        service: String,
    },
    /// A connection to HOST:PORT; accepting it is good.
    Tcp(String),
    /// A connection to a socket; accepting it is good.
    Unix(PathBuf),
    /// A program; exit code 0 is good.
    Command {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

impl Endpoint {
    /// Parses an endpoint. The error continues a sentence that starts with the variable's name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("is {text:?}, which starts with no known scheme; write {FORMS}");
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        let check = match scheme {
            "http" | "https" => {
                let uri = address(text, "http[s]://HOST[:PORT][/PATH]", false)?;
                EndpointCheck::Http { uri, socket: None }
            }
            "grpc" => {
                let (authority, path) = server(text, "grpc://HOST:PORT[/SERVICE]")?;
                let service = path.trim_start_matches('/').to_owned();
                EndpointCheck::Grpc { authority, service }
            }
            "tcp" => match server(text, TCP)? {
                (authority, path) if path.len() < 2 => EndpointCheck::Tcp(authority),
                _ => return Err(not_of(TCP, text)),
            },
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
        matches!(&self.check, EndpointCheck::Http { uri, .. } if uri.scheme_str() == Some("https"))
    }

    /// Whether an HTTP endpoint is on this host: it has a loopback name or address.
    pub(super) fn is_loopback(&self) -> bool {
        let EndpointCheck::Http { uri, .. } = &self.check else {
            return false;
        };
        let host = uri.host().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The host with its port, and the path, of an address that has no query.
fn server(text: &str, form: &str) -> Result<(String, String), String> {
    let uri = address(text, form, true)?;
    let authority = uri.authority().filter(|_| uri.query().is_none());
    let authority = authority.ok_or_else(|| not_of(form, text))?;
    Ok((authority.to_string(), uri.path().to_owned()))
}

fn unix(text: &str, rest: &str) -> Result<EndpointCheck, String> {
    let wrong = || not_of("unix:///SOCKET[:/PATH]", text);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (socket, path) = rest.split_once(':').unzip();
    let socket = socket.unwrap_or(rest);
    if !socket.starts_with('/') || socket.len() < 2 {
        return Err(wrong());
    }
    let Some(path) = path else {
        return Ok(EndpointCheck::Unix(socket.into()));
    };
    let uri = format!("http://localhost{path}").parse().ok();
    let uri = uri.filter(|_| path.starts_with('/')).ok_or_else(wrong)?;
    let socket = Some(socket.into());
    Ok(EndpointCheck::Http { uri, socket })
}

fn command(text: &str, rest: &str) -> Result<EndpointCheck, String> {
    if let Some(found) = rest.chars().find(|c| SHELL_CHARACTERS.contains(c)) {
        return Err(format!(
            "has {found:?}, but no shell reads it: words are split at spaces; put the command into a script and name that"
        ));
    }
    let mut words = rest.split_whitespace();
    let program = words.next().filter(|program| program.starts_with('/'));
    let program = program.ok_or_else(|| {
        format!("is {text:?}; name the program by its absolute path, as in exec:/usr/local/bin/check --fast")
    })?;
    Ok(EndpointCheck::Command {
        program: program.into(),
        arguments: words.map(str::to_owned).collect(),
    })
}

/// Parses an address that has a host and, if it must have one, a port.
fn address(text: &str, form: &str, needs_port: bool) -> Result<Uri, String> {
    let wrong = || not_of(form, text);
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        // The condition's message would show the password to everyone who may read Nodes.
        return Err("must not contain a user or password: conditions can be read by many".into());
    }
    let host = authority.host();
    // A port that is not a number is none to `port_u16`.
    let has_port = authority.as_str().len() > host.len();
    let is_port = match authority.port_u16() {
        Some(port) => port > 0,
        None => !has_port && !needs_port,
    };
    if !is_port || host.trim_matches(['[', ']']).is_empty() {
        return Err(wrong());
    }
    Ok(uri)
}

fn not_of(form: &str, text: &str) -> String {
    format!("is {text:?}, which is no address of the form {form}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(uri: &str, socket: Option<&str>) -> EndpointCheck {
        EndpointCheck::Http {
            uri: uri.parse().unwrap(),
            socket: socket.map(PathBuf::from),
        }
    }

    #[test]
    fn every_form_of_an_endpoint_is_read() {
        let grpc = |authority: &str, service: &str| EndpointCheck::Grpc {
            authority: authority.to_owned(),
            service: service.to_owned(),
        };
        let tcp = |address: &str| EndpointCheck::Tcp(address.to_owned());
        let local = "http://localhost:9099/readiness";
        let v6 = "https://[::1]/ready?full=1";
        let socket = "/run/agent.sock";
        let through = "http://localhost/v1/healthz?brief";
        for (text, expected) in [
            (local, http(local, None)),
            ("http://node.local", http("http://node.local/", None)),
            (v6, http(v6, None)),
            ("tcp://127.0.0.1:53", tcp("127.0.0.1:53")),
            ("tcp://[::1]:53", tcp("[::1]:53")),
            ("grpc://localhost:9000", grpc("localhost:9000", "")),
            (
                "grpc://localhost:9000/my.Service",
                grpc("localhost:9000", "my.Service"),
            ),
            ("unix:///run/agent.sock", EndpointCheck::Unix(socket.into())),
            ("unix:/run/agent.sock", EndpointCheck::Unix(socket.into())),
            (
                "unix:///run/agent.sock:/v1/healthz?brief",
                http(through, Some(socket)),
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
            ("http://", "no address of the form http[s]://HOST"),
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
            let error = Endpoint::parse(text).unwrap_err();
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
