//! Virtual environments under `target/` for the tests' Python clients, one for each folder of tests with its
//! own requirements: not all clients agree on the version of `openai`. Needs `python3` with pip;
//! where the distribution split `venv` off, pip's own `--target` does the same job.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{command, root, run, succeeds};

/// A Python with the client packages.
pub(crate) struct ClientPython {
    program: PathBuf,
    path: Option<PathBuf>,
}

impl ClientPython {
    /// Creates or updates the environment `target/NAME-venv` with the requirements of `tests`.
    ///
    /// # Errors
    /// If Python or a package is not to be had.
    pub(crate) fn set_up(name: &str, tests: &str) -> Result<Self> {
        let venv = root().join(format!("target/{name}-venv"));
        let program = venv.join("bin/python");
        let has_venv = succeeds({
            let mut probe = Command::new(&program);
            probe.args(["-m", "pip", "--version"]);
            probe
        }) || succeeds({
            let mut create = command("python3");
            create.args(["-m", "venv"]).arg(&venv);
            create
        });
        let python = if has_venv {
            Self {
                program,
                path: None,
            }
        } else {
            Self {
                program: "python3".into(),
                path: Some(root().join(format!("target/{name}-site"))),
            }
        };
        python
            .install(&Path::new(tests).join("requirements.txt"))
            .context("the client tests need Python 3 with pip")?;
        Ok(python)
    }

    /// `python` with the packages in reach.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(&self.program);
        if let Some(path) = &self.path {
            command.env("PYTHONPATH", path);
        }
        command
    }

    fn install(&self, requirements: &Path) -> Result<()> {
        let mut install = command(&self.program);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
        ]);
        install.arg(requirements);
        if let Some(path) = &self.path {
            install.arg("--upgrade").arg("--target").arg(path);
        }
        run(install)
    }
}
