//! Any text is a policy or is refused with a reason, and a policy holds what its file promises.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_broker::policy::parse;

fuzz_target!(|text: &str| match parse(text) {
    Ok(policy) => {
        assert!(policy.silence.suspect_min <= policy.silence.stale_after);
        if let (Some(usual), Some(most)) = (policy.duration_default, policy.duration_max) {
            assert!(usual <= most);
        }
        // What operators add below changes nothing of what they wrote above.
        let again = parse(&format!("{text}\n# checked\n")).expect("a remark is no mistake");
        assert_eq!(again, policy);
    }
    Err(error) => assert!(error.to_string().len() > "the policy cannot be used: ".len()),
});
