//! What an answer of the API server means, where it is not what was asked for: each has a word, and says
//! what to do.

use std::future::Future;
use std::time::Duration;

use sublet_crds::Obstacle;
use tokio::time::timeout;

use super::Why;

/// How long a look at one reservation may take. It is then begun anew, from what is there.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// What came of a look, within a bound; or why nothing did.
pub(super) async fn bounded<T>(
    look: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Why> {
    let Ok(looked) = timeout(LOOK_MAX, look).await else {
        let why = "the API server of this cluster does not answer";
        return Err(Why::hindered(Obstacle::ApiServerSilent, why));
    };
    looked.map_err(|error| meaning(&error))
}

/// Why nothing came of a request. Whoever is asked before an object is written is known by the API server's
/// words alone: the status of his refusal is his own choice.
pub(super) fn meaning(error: &kube::Error) -> Why {
    let kube::Error::Api(status) = error else {
        let why = format!("the API server is not reached: {error}");
        return Why::hindered(Obstacle::ApiServerSilent, why);
    };
    let text = status.message.as_str();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let obstacle = match status.code {
        _ if says(&["failed calling webhook", "failed to call webhook"]) => Obstacle::WebhookSilent,
        _ if says(&["denied the request", "denied request"]) => Obstacle::AdmissionRefused,
        403 if says(&["being terminated"]) => {
            return Why::suspected(Obstacle::StillDeleting, text);
        }
        // It is looked at again, as it is then.
        409 => return Why::suspected(Obstacle::SliceContested, text),
        401 => Obstacle::NotAuthenticated,
        403 => Obstacle::Forbidden,
        404 if says(&["could not find the requested resource", "page not found"]) => {
            Obstacle::NoLiqo
        }
        // Something that it belongs to has gone meanwhile.
        404 => return Why::suspected(Obstacle::StillDeleting, text),
        400 | 413 | 422 => Obstacle::ObjectRefused,
        _ => {
            let why = format!("the API server does not do its part ({}): {text}", status.code);
            return Why::hindered(Obstacle::ApiServerSilent, why);
        }
    };
    Why::hindered(obstacle, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn judged(code: u16, message: &str) -> (Option<Obstacle>, Option<Obstacle>) {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        let why = meaning(&kube::Error::Api(Box::new(status)));
        assert!(why.message.contains(message), "{why:?}");
        (why.obstacle, why.suspect)
    }

    #[test]
    fn every_answer_has_a_word() {
        use Obstacle as O;
        for (code, message, obstacle) in [
            (401, "Unauthorized", O::NotAuthenticated),
            (403, "pods is forbidden: User cannot list resource", O::Forbidden),
            (404, "the server could not find the requested resource", O::NoLiqo),
            (422, "ResourceSlice is invalid: spec.class", O::ObjectRefused),
            (400, "strict decoding error", O::ObjectRefused),
            (429, "too many requests", O::ApiServerSilent),
            (500, "etcdserver: request timed out", O::ApiServerSilent),
            (503, "the server is currently unable to handle the request", O::ApiServerSilent),
            (418, "a teapot", O::ApiServerSilent),
        ] {
            assert_eq!(judged(code, message), (Some(obstacle), None), "{code} {message}");
        }
        for (code, message, suspect) in [
            (409, "the object has been modified", O::SliceContested),
            (
                403,
                "unable to create new content in namespace x because it is being terminated",
                O::StillDeleting,
            ),
            (404, "namespaces \"liqo-tenant-rome\" not found", O::StillDeleting),
        ] {
            assert_eq!(judged(code, message), (None, Some(suspect)), "{code} {message}");
        }
    }

    #[test]
    fn whoever_is_asked_before_is_known_by_the_words_whatever_the_status() {
        let silent = "Internal error occurred: failed calling webhook \"shadowpod.validate.liqo.io\": \
                      failed to call webhook: Post: connection refused";
        assert_eq!(judged(500, silent).0, Some(Obstacle::WebhookSilent));
        let refused = "admission webhook \"shadowpod.validate.liqo.io\" denied the request: missing \
                       creator label";
        for code in [400, 403, 500] {
            assert_eq!(judged(code, refused).0, Some(Obstacle::AdmissionRefused));
        }
        let policy = "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no";
        assert_eq!(judged(422, policy).0, Some(Obstacle::AdmissionRefused));
    }

    #[test]
    fn an_api_server_that_is_not_reached_is_silent() {
        let why = meaning(&kube::Error::Service("connection refused".into()));
        assert_eq!(why.obstacle, Some(Obstacle::ApiServerSilent));
    }
}
