//! The objects of one kind, as the watch last showed them.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};

use super::instruction::version;

/// The objects of one kind. An older sight of one never replaces a newer one: what we wrote is
/// known before the watch tells it.
#[derive(Debug)]
pub(crate) struct Shelf<N, K> {
    objects: BTreeMap<N, K>,
    listing: Option<BTreeMap<N, K>>,
    /// How far the watch has come.
    watched: u64,
    /// How many whole lists were seen.
    lists: u64,
}

impl<N, K> Default for Shelf<N, K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listing: None, watched: 0, lists: 0 }
    }
}

impl<N: Ord + Clone, K: ResourceExt> Shelf<N, K> {
    pub(crate) fn get(&self, name: &N) -> Option<&K> {
        self.objects.get(name)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &N> {
        self.objects.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&N, &K)> {
        self.objects.iter()
    }

    /// How many whole lists were seen: to be remembered by whoever begins to work.
    pub(crate) fn lists(&self) -> u64 {
        self.lists
    }

    /// What we wrote ourselves, in work that began after so many lists. If the watch has come further
    /// and shows nothing, it is gone again; if a whole list came meanwhile and it is not there, it is
    /// gone too, or the watch will say otherwise; if the watch shows another one of the same name,
    /// that one has come after it. Says whether it is what is there: all that the watch has shown of it
    /// was known to that work, because nothing is written over what somebody else has changed.
    pub(crate) fn renew(&mut self, name: N, object: K, begun: u64) -> bool {
        let shown = self.objects.get(&name);
        let known = match shown {
            Some(known) => version(known),
            None if begun < self.lists => return false,
            None => self.watched,
        };
        let is_shown = shown
            .is_some_and(|shown| shown.uid() == object.uid() && version(shown) == version(&object));
        let is_newer = version(&object) > known;
        if is_newer {
            self.objects.insert(name, object);
        }
        is_newer || is_shown
    }

    /// What the watch says; the names of what is to be looked at.
    pub(crate) fn on(
        &mut self,
        event: Result<Event<K>, watcher::Error>,
        name: impl Fn(&K) -> N,
    ) -> Vec<N> {
        if let Ok(Event::Apply(object) | Event::Delete(object) | Event::InitApply(object)) = &event
        {
            self.watched = self.watched.max(version(object));
        }
        match event {
            Ok(Event::Apply(object)) => {
                let name = name(&object);
                if put(&mut self.objects, name.clone(), object) { vec![name] } else { Vec::new() }
            }
            Ok(Event::Delete(object)) => {
                let name = name(&object);
                self.objects.remove(&name);
                vec![name]
            }
            Ok(Event::Init) => {
                self.listing = Some(BTreeMap::new());
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                let list = self.listing.get_or_insert_default();
                list.insert(name(&object), object);
                Vec::new()
            }
            Ok(Event::InitDone) => {
                self.lists += 1;
                let before = std::mem::take(&mut self.objects);
                self.objects = self.listing.take().unwrap_or_default();
                let gone = before.into_keys().filter(|name| !self.objects.contains_key(name));
                let gone: Vec<_> = gone.collect();
                self.objects.keys().cloned().chain(gone).collect()
            }
            Err(error) => {
                tracing::warn!(%error, "a watch was cut; it is opened again");
                Vec::new()
            }
        }
    }
}

/// Keeps the newer of two; says whether that is this one.
fn put<N: Ord, K: ResourceExt>(objects: &mut BTreeMap<N, K>, name: N, object: K) -> bool {
    let known = objects.get(&name);
    let is_news =
        known.is_none_or(|known| known.uid() != object.uid() || version(known) < version(&object));
    if is_news {
        objects.insert(name, object);
    }
    is_news
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_crds::{ResourceRequest, ResourceRequestSpec};

    fn object(uid: &str, version: u64) -> ResourceRequest {
        let mut object = ResourceRequest::new("a", ResourceRequestSpec::default());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(version.to_string());
        object
    }

    fn uid(shelf: &Shelf<String, ResourceRequest>) -> Option<String> {
        shelf.get(&"a".to_owned()).and_then(ResourceExt::uid)
    }

    #[test]
    fn what_we_wrote_does_not_bring_back_what_is_gone_nor_hide_what_came_after_it() {
        let mut shelf = Shelf::default();
        let name = ResourceExt::name_any;
        shelf.on(Ok(Event::Apply(object("old", 5))), name);
        shelf.renew("a".to_owned(), object("old", 6), 0);
        assert!(shelf.on(Ok(Event::Apply(object("old", 6))), name).is_empty(), "known already");
        shelf.on(Ok(Event::Delete(object("old", 8))), name);
        shelf.renew("a".to_owned(), object("old", 7), 0);
        assert_eq!(uid(&shelf), None);
        assert_eq!(shelf.on(Ok(Event::Apply(object("new", 9))), name), ["a"]);
        shelf.renew("a".to_owned(), object("old", 7), 0);
        assert_eq!(uid(&shelf).as_deref(), Some("new"));
    }

    #[test]
    fn what_somebody_else_has_changed_is_told_from_what_we_wrote() {
        let mut shelf = Shelf::default();
        let name = ResourceExt::name_any;
        let mut renew = |shown: u64, written: u64| {
            shelf.on(Ok(Event::Apply(object("one", shown))), name);
            shelf.renew("a".to_owned(), object("one", written), 0)
        };
        assert!(renew(5, 7), "the watch is behind");
        assert!(renew(9, 9), "it has shown the last that we wrote");
        assert!(!renew(11, 10), "somebody has edited it after that");
        shelf.on(Ok(Event::Delete(object("one", 12))), name);
        assert!(!shelf.renew("a".to_owned(), object("one", 11), 0), "it is gone");
        shelf.on(Ok(Event::Apply(object("other", 13))), name);
        assert!(!shelf.renew("a".to_owned(), object("one", 11), 0), "that is another one");
    }

    #[test]
    fn what_a_whole_list_does_not_show_stays_gone_whatever_was_written_before() {
        let mut shelf = Shelf::default();
        let name = ResourceExt::name_any;
        shelf.on(Ok(Event::Apply(object("old", 5))), name);
        let begun = shelf.lists();
        shelf.on(Ok(Event::Init), name);
        assert_eq!(shelf.on(Ok(Event::InitDone), name), ["a"]);
        shelf.renew("a".to_owned(), object("old", 7), begun);
        assert_eq!(uid(&shelf), None);
        shelf.renew("a".to_owned(), object("new", 9), shelf.lists());
        assert_eq!(uid(&shelf).as_deref(), Some("new"));
    }
}
