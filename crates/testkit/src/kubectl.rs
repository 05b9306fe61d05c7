//! kubectl, on a cluster.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::binaries::Program;
use crate::cluster::Cluster;
use crate::error::{Error, during};
use crate::wait::PATIENCE;

impl Cluster {
    /// Runs kubectl as the administrator, and gives what it printed; its failure is an error that
    /// holds what it said.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.kubectl_as(self.kubeconfig(), arguments)
    }

    /// Runs kubectl with another kubeconfig.
    pub fn kubectl_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String, Error> {
        run(self.kubectl_command(kubeconfig), arguments, "")
    }

    /// What `kubectl … -o json` prints.
    pub fn kubectl_json(&self, arguments: &[&str]) -> Result<Value, Error> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat())?;
        serde_json::from_str(&text)
            .map_err(|error| during(|| "understanding kubectl".to_owned())(error.into()))
    }

    /// Applies manifests, given as text, by server-side apply.
    pub fn apply(&self, manifests: &str) -> Result<String, Error> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        run(self.kubectl_command(self.kubeconfig()), &arguments, manifests)
    }

    /// Applies manifests that hold definitions of custom resources, and returns when all are served.
    pub fn apply_crds(&self, manifests: &str) -> Result<(), Error> {
        self.apply(manifests)?;
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        let wait = ["wait", "--for=condition=Established", &timeout, "crd", "--all"];
        self.kubectl(&wait).map(drop)
    }

    fn kubectl_command(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new(self.binaries().path(Program::Kubectl));
        command.arg("--kubeconfig").arg(kubeconfig);
        // Not the person's own settings, nor a cache in which clusters are told apart by port alone.
        command.arg("--cache-dir").arg(self.folder().join("kubectl")).env("KUBERC", "off");
        command
    }
}

fn run(mut command: Command, arguments: &[&str], input: &str) -> Result<String, Error> {
    let running = || format!("running kubectl {}", arguments.join(" "));
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(during(running))?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Beside the reading: both pipes are shorter than what may go through them. That kubectl
        // does not read all of it shows in its status.
        scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(during(running))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    Err(Error::Kubectl { arguments: arguments.join(" "), status: output.status, said })
}
