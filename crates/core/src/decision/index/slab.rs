//! A list whose elements keep their numbers; the places of those that went are used again.

use alloc::vec::Vec;

/// No number at all.
pub(super) const NONE: u32 = u32::MAX;

/// Elements by number.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    list: Vec<Option<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { list: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.list.get(usize::try_from(number).ok()?)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.list.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// All of them, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter().flatten()
    }

    /// Puts something where there is a place.
    pub(super) fn add(&mut self, item: T) -> u32 {
        if let Some(number) = self.vacant.pop() {
            let place = usize::try_from(number).ok().and_then(|at| self.list.get_mut(at));
            if let Some(place) = place {
                *place = Some(item);
            }
            return number;
        }
        self.list.push(Some(item));
        // Counted in 32 bits; memory ends long before they do.
        u32::try_from(self.list.len()).unwrap_or(NONE).saturating_sub(1)
    }

    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        let taken = self.list.get_mut(usize::try_from(number).ok()?)?.take();
        self.vacant.extend(taken.is_some().then_some(number));
        taken
    }
}
