//! The two requests to the API server about a token, and the reasons for no answer.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::causes::with_causes;

pub(super) struct Reviewer {
    tokens: Api<TokenReview>,
    rights: Api<SubjectAccessReview>,
}

/// Why the API server gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TooLate(Duration),
    #[error(
        "no permission to create {what} ({message}): grant it with `kubectl apply -k config/rbac`"
    )]
    Forbidden { what: &'static str, message: String },
    #[error("cannot create {what}: {message}")]
    Refused { what: &'static str, message: String },
    #[error("cannot reach the API server: {0}")]
    Unreachable(String),
}

impl Reviewer {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            tokens: Api::all(client.clone()),
            rights: Api::all(client.clone()),
        }
    }

    /// The token's user; `None` if the API server does not accept the token.
    pub(super) async fn user_of(&self, token: &str) -> Result<Option<UserInfo>, Unanswered> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let answer = self.tokens.create(&PostParams::default(), &review).await;
        let answer =
            answer.map_err(|error| unanswered("tokenreviews.authentication.k8s.io", error))?;
        let status = answer.status.unwrap_or_default();
        Ok(status
            .user
            .filter(|_| status.authenticated.unwrap_or_default()))
    }

    pub(super) async fn may_get(&self, user: &UserInfo, path: &str) -> Result<bool, Unanswered> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                extra: user.extra.clone(),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".into()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = self.rights.create(&PostParams::default(), &review).await;
        let answer = answer
            .map_err(|error| unanswered("subjectaccessreviews.authorization.k8s.io", error))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn unanswered(what: &'static str, error: kube::Error) -> Unanswered {
    match error {
        kube::Error::Api(status) if status.code == 403 => Unanswered::Forbidden {
            what,
            message: status.message.clone(),
        },
        kube::Error::Api(status) => Unanswered::Refused {
            what,
            message: status.message.clone(),
        },
        error => Unanswered::Unreachable(with_causes(&error)),
    }
}
