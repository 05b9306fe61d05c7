//! Networks between clusters: Liqo's business and their operator's, and none of ours but to leave them be.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};

use crate::cluster::code;

/// How many networks Liqo was told of in a namespace. Where it has no such kind, none; where the agent may
/// not look, there may be one.
pub(in crate::peering) async fn networks(
    client: &Client,
    namespace: &str,
) -> Result<usize, kube::Error> {
    let kind = GroupVersionKind::gvk("networking.liqo.io", "v1beta1", "Configuration");
    let kind = ApiResource::from_gvk_with_plural(&kind, "configurations");
    let all: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let found = all.list_metadata(&ListParams::default()).await;
    counted(found.map(|found| found.items.len()))
}

fn counted(found: Result<usize, kube::Error>) -> Result<usize, kube::Error> {
    match found {
        Err(error) if code(&error) == Some(404) => Ok(0),
        Err(error) if code(&error) == Some(403) => Ok(1),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn where_the_agent_may_not_look_there_may_be_a_network() {
        let said = |code: u16| {
            let status = Status { code, ..Status::default() };
            counted(Err(kube::Error::Api(Box::new(status)))).ok()
        };
        assert_eq!([said(403), said(404), said(500)], [Some(1), Some(0), None]);
        assert_eq!([counted(Ok(0)).ok(), counted(Ok(3)).ok()], [Some(0), Some(3)]);
    }
}
