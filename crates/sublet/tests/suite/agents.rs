//! `sublet agent` where it needs no cluster: its configuration, and what is wrong with it.

use crate::program::Person;

#[test]
fn the_configuration_is_printed_as_it_results() {
    let anna = Person::new();
    let line = "agent -broker-transport=http -broker-url=https://b:8443 --broker-cert-path=c \
                --offer=50% --labels=tier=gold --cluster-id=rome -print-config";
    let said = anna.ok(&line.split_whitespace().collect::<Vec<_>>().join(" "));
    for expected in
        ["cluster-id = \"rome\"", "offer = \"50%\"", "tier = \"gold\"", "https://b:8443"]
    {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[test]
fn a_certificate_of_another_cluster_is_an_error_at_the_start() {
    let anna = Person::new();
    anna.ok("ca init");
    anna.ok("ca issue milan --out certs/milan");
    let with = "agent --broker-transport=http --broker-url=https://127.0.0.1:1";
    anna.fails(
        &format!("{with} --broker-cert-path=certs/milan --cluster-id=rome"),
        1,
        "--cluster-id is rome, but the certificate is that of milan",
    );
    anna.fails(&format!("{with} --broker-cert-path=nowhere"), 1, "--broker-cert-path");
    anna.fails("agent --broker-transport=kubernetes", 1, "not available in this version");
}
