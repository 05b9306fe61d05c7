//! Records from any bytes: refused, or exactly what was written.

use proptest::prelude::*;
use sublet_core::id::Revision;
use sublet_core::time::Time;
use sublet_log::{Body, Checksum, Head, Record, Writer};

use crate::scene::{cluster, note, reservation};

fn events(count: usize, why: &str) -> Vec<sublet_core::event::Event> {
    let now = Time::from_millis(5);
    let mut events: Vec<_> = (0..count as u64).flat_map(|n| reservation(n, now).1).collect();
    events.push(sublet_core::event::Event::Lost { cluster: cluster(3), note: note(why) });
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_record_is_read_back_as_it_was_sealed(
        revision in 0..u64::MAX,
        millis: u64,
        later in 0..1000u64,
        writer: u128,
        count in 0..20usize,
        why in ".*",
    ) {
        let (head_time, time) = (Time::from_millis(millis), millis.saturating_add(later));
        let checksum = Checksum::of(why.as_bytes());
        let head = Head { revision: Revision(revision), checksum, time: head_time };
        let body = Body::of(events(count, &why)).unwrap();
        let sealed = Record::seal(&head, Writer(writer), Time::from_millis(time), body).unwrap();
        let read = Record::decode(sealed.text()).unwrap();
        prop_assert_eq!(&read, &sealed);
        prop_assert_eq!(read.events(), sealed.events());
        prop_assert_eq!(read.envelope(), sealed.envelope());
        prop_assert!(!read.text().contains('\n'));
    }

    #[test]
    fn a_changed_record_is_refused(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let body = Body::of(events(2, "x")).unwrap();
        let text = Record::seal(&Head::default(), Writer(1), Time::from_millis(1), body).unwrap();
        let mut bytes = text.text().as_bytes().to_vec();
        let at = at.index(bytes.len());
        let changed = bytes[at] != byte;
        bytes[at] = byte;
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert_eq!(Record::decode(whole).is_err(), changed);
        prop_assert!(Record::decode(&text.text()[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_text_is_refused_without_a_panic(text in ".*") {
        prop_assert!(Record::decode(text).is_err());
    }
}
