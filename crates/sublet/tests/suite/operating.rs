//! What operators do, on a real broker; and what they do with its folder while it runs.

use crate::broker::Town;

/// The state of edge in the table of clusters.
fn state(town: &Town) -> String {
    let table = town.anna.ok("get clusters edge");
    table.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn operators_decide_about_clusters_and_the_log_knows_who_and_why() {
    let town = Town::new();
    town.edge_has(8);
    assert_eq!(state(&town), "Active");
    let said = town.anna.ok("cordon edge --why kernel-update");
    assert_eq!(said, "edge cordoned: nothing new is granted there\n");
    assert_eq!(state(&town), "Active,Cordoned");
    town.fails_as("shop", "request --cpu 1 --memory 1Gi", 3, "cordoned");
    town.anna.ok("uncordon edge --why done");
    assert_eq!(state(&town), "Active");

    town.anna.ok("cap edge cpu=2 --why shared");
    town.fails_as("shop", "request --cpu 3 --memory 1Gi", 3, "enough would be");
    assert!(town.anna.ok("get clusters edge -o wide").contains("cpu=2"));
    town.anna.ok("cap edge --why alone-again");
    let id = town.ok_as("shop", "request --cpu 3 --memory 1Gi -o name").trim().to_owned();

    town.anna.ok("drain edge --why moving");
    assert_eq!(state(&town), "Active,Draining");
    let phase = || town.reservation(&id)["status"]["phase"].as_str() == Some("Releasing");
    crate::broker::wait_for("the drain", || phase().then_some(()));
    town.anna.ok("lost edge --why burnt-down");
    let status = crate::broker::wait_for("the end", || {
        let status = town.reservation(&id)["status"].clone();
        (status["phase"].as_str() != Some("Releasing")).then_some(status)
    });
    // It was being emptied before it was given up, so that is why it ended.
    assert_eq!((&status["phase"], &status["reason"]), (&"Released".into(), &"Drained".into()));
    assert_eq!(status["confirmation"], "ProviderLost");

    let log = town.anna.ok("log data");
    for (event, why) in
        [("cordoned", "kernel-update"), ("capped", "shared"), ("given up", "burnt-down")]
    {
        let line = log.lines().find(|line| line.contains(event) && line.contains(why));
        assert!(line.is_some_and(|line| line.contains("by operator anna")), "{event}: {log}");
    }
}

#[test]
fn a_name_that_nobody_has_heard_of_is_taken_for_a_slip() {
    let town = Town::new();
    town.edge_has(8);
    for command in ["cordon", "uncordon", "drain", "lost", "vouch", "cap"] {
        town.anna.fails(&format!("{command} egde --why slip"), 4, "no cluster egde was ever heard");
    }
    assert_eq!(town.anna.ok("get clusters -o name"), "edge\n");
    town.anna.ok("cordon soon --force --why not-yet");
    assert!(town.anna.ok("get clusters -o name").contains("soon"));
    town.anna.ok("uncordon soon --why ready");
    assert_eq!(town.anna.ok("get clusters -o name"), "edge\n");

    // Whoever has a stolen certificate need not have shown itself yet.
    let ended = town.anna.run("revoke --cluster anna --why stolen");
    assert_eq!((ended.status, &*ended.out), (0, "every certificate of anna is revoked\n"));
    assert!(ended.err.contains("no cluster anna was ever heard of"), "{ended:?}");
    assert!(ended.err.contains("--serial"), "{ended:?}");
    town.anna.ok("reinstate --cluster anna --why slip");
    town.anna.ok("revoke --cluster edge --why known");
}

#[test]
fn the_end_of_a_drain_is_said() {
    let town = Town::new();
    town.edge_has(8);
    town.anna.ok("drain edge --why moving");
    let said = town.anna.ok("uncordon edge --why stays");
    assert!(said.starts_with("edge uncordoned") && said.contains("its drain ends"), "{said}");
    assert!(!town.anna.ok("uncordon edge --why again").contains("drain"));
}

#[test]
fn an_operator_is_told_that_it_has_no_cluster() {
    let town = Town::new();
    town.anna.fails("get instructions", 6, "operators have no cluster");
    town.anna.fails("request --cpu 1 --memory 1Gi", 6, "use a cluster's certificate");
}

#[test]
fn a_revoked_certificate_is_not_believed_and_a_new_one_is() {
    let town = Town::new();
    town.edge_has(8);
    town.ok_as("shop", "get reservations");
    let said = town.anna.ok("ca revoke shop --why laptop-stolen");
    assert!(said.starts_with("revoked the certificate of shop with serial "), "{said}");
    town.fails_as("shop", "get reservations", 6, "revoked");
    let listed = town.anna.ok("get revocations");
    let serial = said.trim().rsplit(' ').next().unwrap();
    assert!(listed.contains(serial) && listed.contains("laptop-stolen"), "{listed}");

    town.anna.ok("ca issue shop --out certs/shop-2");
    town.anna.ok("config set-context shop --cert-path certs/shop-2");
    town.ok_as("shop", "get reservations");
    // It has neither lent nor borrowed, so that it may be a slip; it is done all the same.
    let ended = town.anna.run("revoke --cluster shop --why gone");
    assert!(ended.status == 0 && ended.err.contains("warning"), "{ended:?}");
    town.fails_as("shop", "get reservations", 6, "revoked");
    town.anna.ok("reinstate --cluster shop --why back");
    town.ok_as("shop", "get reservations");
    town.anna.fails("ca revoke nobody", 4, "sublet ca list");
    town.anna.fails("revoke --why nobody-named", 2, "--cluster");
}

#[test]
fn the_folder_of_a_running_broker_is_printed_checked_and_copied() {
    let town = Town::new();
    town.edge_has(8);
    let id = town.ok_as("shop", "request --cpu 1 --memory 1Gi -o name").trim().to_owned();
    assert!(town.anna.ok("log data").contains(&id));
    assert!(town.anna.ok("fsck data").contains("state "));
    town.anna.ok("backup data copy.sublet");
    town.ok_as("shop", "request --cpu 1 --memory 1Gi");
    town.anna.ok("restore copy.sublet again");
    assert!(town.anna.ok("log again").contains(&id));
}

#[test]
fn what_the_broker_decides_by_itself_has_its_audit_line_too() {
    let town = Town::new();
    town.edge_has(2);
    let audited = |message: &str, id: &str, more: &str| {
        crate::broker::wait_for(message, || {
            let log = town.anna.read("broker.log");
            let about = |line: &&str| line.contains(" audit: ") && line.contains(id);
            let mut lines = log.lines().filter(about);
            lines
                .find(|line| line.contains(&format!(": {message} ")) && line.contains(more))
                .map(drop)
        });
    };
    let wish = "request --memory 1Gi -o name";
    let waits = town.ok_as("shop", &format!("{wish} --cpu 3 --wait 10m --detach"));
    town.edge_has(4);
    audited("granted", waits.trim(), "provider=edge");
    let short = town.ok_as("shop", &format!("{wish} --cpu 1 --duration 1s"));
    audited("ending", short.trim(), "reason=\"Expired\" by=\"the broker\"");
    town.anna.ok("lost edge --why burnt-down");
    audited("ended", waits.trim(), "reason=\"ProviderLost\" by=\"the broker\"");
    audited("ended", short.trim(), "confirmation=ProviderLost");
    town.edge_has(4);
    audited("provider returned", "cluster=edge", "");
}

#[test]
fn a_certificate_of_another_authority_has_its_audit_line() {
    let town = Town::new();
    town.anna.ok("ca init --dir other");
    town.anna.ok("ca issue shop --dir other --out certs/foreign");
    // It trusts the broker; the broker does not trust it.
    std::fs::copy(town.anna.path("certs/shop/ca.crt"), town.anna.path("certs/foreign/ca.crt"))
        .unwrap();
    let url = &town.url;
    let refused = format!("get reservations --cert-path certs/foreign --broker-url {url}");
    assert_ne!(town.anna.run(&refused).status, 0);
    crate::broker::wait_for("the line", || {
        let log = town.anna.read("broker.log");
        let mut lines = log.lines().filter(|line| line.contains(" audit: denied: certificate"));
        lines.find(|line| line.contains("127.0.0.1") && line.contains("invalid peer")).map(drop)
    });
}

/// The audit line that says `message` of this caller: what is in it, as text or as JSON has it.
fn audited(town: &Town, message: &str, caller: &str, fields: &[(&str, &str)]) -> String {
    crate::broker::wait_for(message, || {
        let log = town.anna.read("broker.log");
        let fits = |line: &&str| {
            let Ok(json) = serde_json::from_str::<serde_json::Value>(line) else {
                let says = |name: &str, value: &str| {
                    let plain = format!(" {name}={value}");
                    let is_there = line.contains(&format!("{plain} ")) || line.ends_with(&plain);
                    is_there || line.contains(&format!(" {name}=\"{value}\""))
                };
                return line.contains(&format!(" audit: {message} "))
                    && says("caller", caller)
                    && fields.iter().all(|(name, value)| says(name, value));
            };
            let says = |name: &str, value: &str| match json[name].as_str() {
                Some(text) => text == value,
                None => value.parse::<u64>().is_ok_and(|number| json[name] == number),
            };
            json["target"] == "audit"
                && says("message", message)
                && says("caller", caller)
                && fields.iter().all(|(name, value)| says(name, value))
        };
        log.lines().find(fits).map(str::to_owned)
    })
}

/// What its request was called.
fn request_of(line: &str) -> String {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(line) {
        return json["request"].as_str().unwrap().to_owned();
    }
    let rest = line.split_once(" request=").unwrap().1;
    rest.split(' ').next().unwrap().trim_matches('"').to_owned()
}

#[test]
fn every_decision_and_every_denial_has_its_audit_line_as_text_and_as_json() {
    for flags in ["--log-format text", "--log-format json"] {
        let town = Town::with(flags);
        town.edge_has(4);
        let id = town.ok_as("shop", "request --cpu 1 --memory 1Gi -o name").trim().to_owned();
        let waits = "request --cpu 8 --memory 1Gi --wait 10m --detach -o name";
        let waits = town.ok_as("shop", waits).trim().to_owned();
        town.fails_as("shop", "request --cpu 9 --memory 1Gi", 3, "less");
        town.fails_as("shop", "cordon edge --why test", 6, "operator's certificate");
        town.ok_as("shop", &format!("release {id}"));
        town.anna.ok("cordon edge --why test");
        town.anna.fails("get instructions", 6, "operators have no cluster");
        let of_id = ("reservation", id.as_str());
        let reserve = ("route", "reserve");
        let lines = [
            ("decided", "shop", vec![of_id, ("phase", "Reserved"), ("provider", "edge")]),
            ("decided", "shop", vec![("reservation", &waits), ("phase", "Pending")]),
            ("denied", "shop", vec![reserve, ("code", "NoSuitableCluster"), ("status", "409")]),
            ("denied", "shop", vec![("route", "cordon"), ("code", "Forbidden")]),
            ("done", "shop", vec![of_id, ("route", "release"), ("phase", "Releasing")]),
            ("operator", "operator anna", vec![("route", "cordon"), ("why", "test")]),
            ("denied", "operator anna", vec![("route", "instructions"), ("code", "Forbidden")]),
        ];
        let named = lines
            .map(|(message, caller, fields)| request_of(&audited(&town, message, caller, &fields)));
        let distinct: std::collections::BTreeSet<_> = named.iter().collect();
        assert_eq!(distinct.len(), named.len(), "{flags}: {named:?}");
        assert!(named.iter().all(|id| !id.is_empty()), "{flags}: {named:?}");
    }
}

#[test]
fn a_connection_too_many_has_its_audit_line_too() {
    let town = Town::with("--cluster-connections-max 1");
    let _holds = town.follow("shop", "get instructions --watch");
    crate::broker::wait_for("the line", || {
        town.run_as("shop", "get reservations");
        let log = town.anna.read("broker.log");
        let mut lines = log.lines().filter(|line| line.contains(" audit: denied: connection "));
        lines.find(|line| line.contains("caller=\"shop\"")).map(drop)
    });
}
