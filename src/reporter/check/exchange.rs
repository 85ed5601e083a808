//! What requests have in common: how the reporter calls itself, and a connection that is driven beside what goes over it.

use std::convert::Infallible;

/// How the reporter calls itself, towards what it checks and towards the API server.
pub const USER_AGENT: &str = concat!("nodegate-reporter/", env!("CARGO_PKG_VERSION"));

/// Runs an exchange over a connection, which has to be driven beside it.
pub async fn drive<T>(
    exchange: impl Future<Output = T>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> T {
    let driver = async {
        // What goes wrong with the connection is told to the exchange too.
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        result = exchange => result,
        never = driver => match never {},
    }
}
