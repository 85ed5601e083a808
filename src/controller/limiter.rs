//! The flags that limit the rate of writes, Events included. The Lease is exempt: an instance that cannot renew it stops writing.

use nodegate_engine::Rate;

/// How many requests that change something the API server is asked for.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct LimiterArgs {
    /// How many requests that change something may be made a second, Events among them; without it, or with 0, as many as
    /// the API server accepts
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    kube_api_qps: Option<f64>,

    /// How many of them may be made at once; by default as many as in a second
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true)]
    kube_api_burst: Option<i64>,
}

impl LimiterArgs {
    /// The configured rate; `None` means no limit.
    pub(crate) fn rate(self) -> Option<Rate> {
        let rate = self.kube_api_qps;
        let per_second = rate.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let burst = self.kube_api_burst.filter(|burst| *burst > 0);
        let burst = burst.map(|burst| f64::from(u32::try_from(burst).unwrap_or(u32::MAX)));
        Some(Rate {
            per_second,
            burst: burst.unwrap_or(per_second.ceil()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LimiterArgs,
    }

    #[test]
    fn a_rate_is_taken_as_the_go_client_takes_it() {
        #[rustfmt::skip]
        let cases = [
            (&[][..], None),
            (&["--kube-api-qps=50"], Some((50.0, 50.0))),
            (&["--kube-api-qps=0.5"], Some((0.5, 1.0))),
            (&["--kube-api-qps", "20", "--kube-api-burst", "30"], Some((20.0, 30.0))),
            (&["--kube-api-qps=20", "--kube-api-burst=0"], Some((20.0, 20.0))),
            // A negative rate means no limit.
            (&["--kube-api-qps", "-1", "--kube-api-burst", "30"], None),
            (&["--kube-api-qps=0"], None),
            (&["--kube-api-burst=30"], None),
        ];
        for (arguments, expected) in cases {
            let cli = Cli::try_parse_from([&["nodegate"], arguments].concat());
            let cli = cli.unwrap_or_else(|error| panic!("{error}"));
            let expected = expected.map(|(per_second, burst)| Rate { per_second, burst });
            assert_eq!(cli.args.rate(), expected, "{arguments:?}");
        }
    }
}
