//! Lists of what other clusters may have here, a page at a time: how many there are is theirs to say, and an answer is
//! in memory as a whole while it is read.

use std::fmt::Debug;

use kube::api::{ListParams, ObjectList, PartialObjectMeta};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::ground::Answer;

/// How many are read at a time.
pub(super) const PAGE: u32 = 50;

/// All of them.
pub(super) async fn listed<K>(api: &Api<K>, which: &ListParams) -> Answer<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut pages = Pages::of(which);
    while let Some(page) = pages.next.take() {
        pages.turn(&page, api.list(&page).await?);
    }
    Ok(pages.all)
}

/// All of them, as far as everything has it.
pub(super) async fn listed_metadata<K>(
    api: &Api<K>,
    which: &ListParams,
) -> Answer<Vec<PartialObjectMeta<K>>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut pages = Pages::of(which);
    while let Some(page) = pages.next.take() {
        pages.turn(&page, api.list_metadata(&page).await?);
    }
    Ok(pages.all)
}

/// What was read so far, and what to ask for next.
struct Pages<K> {
    all: Vec<K>,
    next: Option<ListParams>,
}

impl<K: ResourceExt> Pages<K> {
    fn of(which: &ListParams) -> Self {
        Self { all: Vec::new(), next: Some(which.clone().limit(PAGE)) }
    }

    fn turn(&mut self, asked: &ListParams, page: ObjectList<K>)
    where
        K: Clone,
    {
        // Who wrote which field is nobody's business here, and most of many an object.
        self.all.extend(page.items.into_iter().map(|mut one| {
            one.managed_fields_mut().clear();
            one
        }));
        let rest = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = rest.map(|token| asked.clone().continue_token(&token));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::{ListMeta, TypeMeta};

    use super::*;

    fn page(names: &[&str], rest: Option<&str>) -> ObjectList<Secret> {
        let secret = |name: &&str| {
            let mut one = Secret::default();
            one.metadata.name = Some((*name).to_owned());
            one
        };
        ObjectList {
            types: TypeMeta::list::<Secret>(),
            metadata: ListMeta { continue_: rest.map(str::to_owned), ..ListMeta::default() },
            items: names.iter().map(secret).collect(),
        }
    }

    #[test]
    fn all_are_listed_however_many_pages_they_take() {
        let mut pages = Pages::of(&ListParams::default().labels("a=b"));
        while let Some(asked) = pages.next.take() {
            assert_eq!((asked.limit, asked.label_selector.as_deref()), (Some(PAGE), Some("a=b")));
            let read = match asked.continue_token.as_deref() {
                None => page(&["a", "b"], Some("from-c")),
                Some("from-c") => page(&["c"], Some("")),
                other => panic!("{other:?}"),
            };
            pages.turn(&asked, read);
        }
        assert_eq!(
            pages.all.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }
}
