//! The Go modules that programs are built in.
//!
//! `go install k8s.io/kubernetes/…@version` is refused, because the module replaces its own
//! libraries by folders of its repository. A module of our own that replaces them by their published
//! versions is not. Liqo's replaces a library by a fork, and so must a module that uses it.

use super::release::{ETCD, KUBERNETES, KWOK, Kit, LIQO, LIQO_MODULE, Program, Version};

/// The oldest Go that builds these versions.
pub(super) const GO: &str = "1.25.0";

/// The library that Liqo replaces, its fork, and the fork's version, as Liqo's own module has them.
const LIQO_REPLACES: &str = "github.com/virtual-kubelet/virtual-kubelet";
const LIQO_FORK: &str = "github.com/liqotech/virtual-kubelet";
const LIQO_FORK_VERSION: &str = "v1.5.1-0.20241004150443-cb08879adf2f";

/// The libraries that the module of Kubernetes replaces.
const LIBRARIES: [&str; 31] = [
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "apiserver",
    "cli-runtime",
    "client-go",
    "cloud-provider",
    "cluster-bootstrap",
    "code-generator",
    "component-base",
    "component-helpers",
    "controller-manager",
    "cri-api",
    "cri-client",
    "csi-translation-lib",
    "dynamic-resource-allocation",
    "endpointslice",
    "externaljwt",
    "kms",
    "kube-aggregator",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "metrics",
    "mount-utils",
    "pod-security-admission",
    "sample-apiserver",
    "sample-cli-plugin",
    "sample-controller",
];

/// A module: the name of its folder, and its `go.mod`.
pub(super) struct Module {
    pub(super) name: &'static str,
    pub(super) text: String,
    /// A module in it that Go's database of checksums does not know, so that asking would fail.
    pub(super) unknown_sum: Option<&'static str>,
}

/// The module that a program is built in; those of Kubernetes share one, and so do those of Liqo.
pub(super) fn module(program: Program) -> Module {
    let (name, text) = match (program, program.kit()) {
        (Program::Etcd, _) => ("etcd", requiring("go.etcd.io/etcd/server/v3", ETCD)),
        (Program::Kwok, _) => ("kwok", requiring("sigs.k8s.io/kwok", KWOK)),
        (_, Kit::Kubernetes) => ("kubernetes", kubernetes()),
        (_, Kit::Liqo | Kit::Liqoctl) => ("liqo", liqo()),
    };
    let unknown_sum = (name == "liqo").then_some(LIQO_FORK);
    Module { name, text: format!("module sublet.test/{name}\n\n{text}"), unknown_sum }
}

/// Liqo's module at its version, as `go mod download` wants it.
pub(super) fn liqo_at_version() -> String {
    format!("{LIQO_MODULE}@{LIQO}")
}

/// What the linker is told: no symbols, and for Kubernetes its version, which it would not know.
pub(super) fn linker_flags(program: Program) -> String {
    let plain = "-s -w".to_owned();
    if program.kubernetes_minor().is_none() {
        return plain;
    }
    let Version { major, minor, patch } = KUBERNETES;
    let facts = [
        ("gitVersion", format!("v{major}.{minor}.{patch}")),
        ("gitMajor", major.to_string()),
        ("gitMinor", minor.to_string()),
    ];
    let flag = |(name, value)| format!(" -X k8s.io/component-base/version.{name}={value}");
    facts.into_iter().map(flag).fold(plain, |flags, flag| flags + &flag)
}

fn requiring(module: &str, version: &str) -> String {
    format!("go {GO}\n\nrequire {module} {version}\n")
}

fn kubernetes() -> String {
    let Version { major, minor, patch } = KUBERNETES;
    let replace =
        |library| format!("\nreplace k8s.io/{library} => k8s.io/{library} v0.{minor}.{patch}\n");
    let kubernetes = requiring("k8s.io/kubernetes", &format!("v{major}.{minor}.{patch}"));
    LIBRARIES.into_iter().map(replace).fold(kubernetes, |text, line| text + &line)
}

fn liqo() -> String {
    let fork = format!("{LIQO_REPLACES} => {LIQO_FORK} {LIQO_FORK_VERSION}");
    format!("{}\nreplace {fork}\n", requiring(LIQO_MODULE, LIQO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_of_kubernetes_is_replaced_by_its_published_version() {
        let text = module(Program::Kubectl).text;
        assert!(text.starts_with("module sublet.test/kubernetes\n\ngo 1.25.0\n"));
        assert!(text.contains("\nrequire k8s.io/kubernetes v1.35.8\n"));
        assert_eq!(text.matches("\nreplace ").count(), LIBRARIES.len());
        assert!(text.contains("\nreplace k8s.io/client-go => k8s.io/client-go v0.35.8\n"));
    }

    #[test]
    fn only_kubernetes_is_told_its_version() {
        assert!(linker_flags(Program::ApiServer).contains("version.gitVersion=v1.35.8"));
        assert_eq!(linker_flags(Program::Etcd), "-s -w");
    }

    #[test]
    fn liqo_is_built_with_the_fork_that_it_wants() {
        let module = module(Program::Liqoctl);
        assert!(module.text.contains("\nrequire github.com/liqotech/liqo v1.2.0\n"));
        let replaced = "\nreplace github.com/virtual-kubelet/virtual-kubelet => ";
        assert!(module.text.contains(&format!("{replaced}{}", module.unknown_sum.unwrap())));
    }
}
