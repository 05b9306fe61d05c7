//! Rules for the pods that a consumer sends, in CEL: Liqo's quota counts what Kubernetes sets aside for them, or they
//! are refused.
//!
//! Liqo adds up the requests of containers as they are written, takes of the init containers the one that asks for
//! most, and gives back what was counted when a pod is deleted. What is sent is not looked at by Kubernetes before a pod
//! is made of it, and Kubernetes sees more in it than Liqo: it takes limits for requests where there are none, rounds
//! each amount up to thousandths, starts sidecars, and has a pod take what it takes until it has ended. Liqo's own
//! virtual kubelet sends pods that Kubernetes has looked at in the other cluster, and none of these rules is in their
//! way but where they say what to do instead.

use serde_json::{Value, json};

use super::held::in_the_background;

/// How long a pod may take to end once it is deleted, in seconds: Liqo counts it no more by then.
const ENDING_MAX: u32 = 600;

/// An amount as Kubernetes writes it: not below zero, and nothing finer than thousandths.
const AMOUNT: &str = "^[0-9]{1,19}(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[0-9]{1,2})?$";

/// What the rules speak of.
pub(super) fn variables() -> Value {
    json!([
        variable("initial", "object.spec.pod.?initContainers.orValue([])"),
        variable("every", "object.spec.pod.containers + variables.initial"),
        variable("cpus", &thousandths("object.spec.pod.containers")),
        variable("initialCpus", &thousandths("variables.initial")),
        variable("initialCores", "variables.initialCpus.map(cpu, (cpu + 999) / 1000)"),
    ])
}

/// Each with what is said to whoever breaks it.
pub(super) fn rules() -> Vec<(String, String)> {
    let made = [
        (
            amounts(),
            "what a container asks for is not below zero, and whole or in thousandths: Liqo's quota adds it up as \
             it is written"
                .to_owned(),
        ),
        (
            limits_with_requests(),
            "Liqo's quota counts requests alone: what has a limit needs a request".to_owned(),
        ),
        (
            no_more_than_containers(),
            "Liqo's quota counts what containers ask for alone: a pod of a consumer may not ask for more as a \
             whole, nor for a place, a priority, devices, a runtime class or the machine's own network"
                .to_owned(),
        ),
        (
            no_sidecars_that_take(),
            "Liqo's quota does not count sidecars: let the containers ask for what they take, and the sidecars \
             for 0"
                .to_owned(),
        ),
        (
            initial_that_are_counted(),
            "Liqo's quota takes the first of init containers that ask for the same number of cores, rounded up: \
             let that one ask for most, or the containers for as much"
                .to_owned(),
        ),
        (
            ends_in_time(),
            format!(
                "Liqo's quota does not count pods that are ending: a pod of a consumer has {ENDING_MAX} s for \
                 that at most (terminationGracePeriodSeconds)"
            ),
        ),
    ];
    let made = made.map(|(rule, message)| (as_made(&rule), message));
    let deleted = (
        in_the_background().to_owned(),
        "Liqo's quota gives back what a pod takes each time that it is deleted: let it be deleted in the \
         background"
            .to_owned(),
    );
    made.into_iter().chain([deleted]).collect()
}

fn variable(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression })
}

/// A rule for what is new in a pod: one that was here before is not refused what else changes in it.
fn as_made(rule: &str) -> String {
    format!(
        "request.operation == 'DELETE' || \
         (oldObject != null && object.spec == oldObject.spec) || ({rule})"
    )
}

/// What each of these containers asks for, in thousandths of a core.
fn thousandths(containers: &str) -> String {
    format!(
        "{containers}.map(one, string(one.?resources.?requests[?'cpu'].orValue('0')))\
         .map(cpu, cpu.endsWith('m') ? int(cpu.substring(0, size(cpu) - 1)) \
         : quantity(cpu).asInteger() * 1000)"
    )
}

fn amounts() -> String {
    format!(
        "variables.every.all(one, \
         [one.?resources.?requests.orValue({{}}), one.?resources.?limits.orValue({{}})]\
         .all(list, list.all(name, string(list[name]).matches('{AMOUNT}'))))"
    )
}

/// Where there is none, Kubernetes takes the limit for it.
fn limits_with_requests() -> String {
    "variables.every.all(one, one.?resources.?limits.orValue({}).all(name, \
     name in one.?resources.?requests.orValue({})))"
        .to_owned()
}

/// Nothing that would take more than was counted, or push away whoever is at home here. A runtime class may have an
/// overhead, and devices are claimed beside what is asked for.
fn no_more_than_containers() -> String {
    let absent = [
        "resources",
        "overhead",
        "nodeName",
        "priorityClassName",
        "priority",
        "resourceClaims",
        "runtimeClassName",
    ]
    .map(|field| format!("!has(object.spec.pod.{field})"));
    let off = ["hostNetwork", "hostPID", "hostIPC"]
        .map(|field| format!("(!has(object.spec.pod.{field}) || !object.spec.pod.{field})"));
    [absent.join(" && "), off.join(" && ")].join(" && ")
}

/// Init containers that go on running beside the others ask for nothing.
fn no_sidecars_that_take() -> String {
    "variables.initial.all(one, !has(one.restartPolicy) || one.restartPolicy != 'Always' || \
     one.?resources.?requests.orValue({}).all(name, \
     quantity(string(one.resources.requests[name])).compareTo(quantity('0')) == 0))"
        .to_owned()
}

/// Liqo compares them by whole units, rounded up, and keeps the first: of everything but cpu, that is less than one
/// byte or device away from what they ask for.
fn initial_that_are_counted() -> String {
    "size(variables.initial) == 0 || variables.initialCpus.max() <= variables.cpus.sum() || \
     variables.initialCpus[variables.initialCores.indexOf(variables.initialCores.max())] \
     == variables.initialCpus.max()"
        .to_owned()
}

fn ends_in_time() -> String {
    format!(
        "!has(object.spec.pod.terminationGracePeriodSeconds) || \
         object.spec.pod.terminationGracePeriodSeconds <= {ENDING_MAX}"
    )
}
