//! What a fresh machine needs beyond Rust, Node and a package manager.

mod apt;
mod beanstalkd;
mod postgres;
pub(crate) mod python;
mod redis;
mod rust;

use crate::error::TaskError;
use crate::workspace::Workspace;

/// Installs whatever is missing; quick and quiet when nothing is.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    rust::install_components(workspace)?;
    let mut missing = Vec::new();
    if !postgres::is_installed() {
        missing.extend(postgres::PACKAGES);
    }
    if python::base(&workspace.shell).is_none() {
        missing.extend(python::PACKAGES);
    }
    if !missing.is_empty() {
        apt::install(&workspace.shell, &missing)?;
    }
    if !postgres::is_installed() {
        return Err(TaskError::message(
            "PostgreSQL's programs are still missing: put the folder with `initdb` and `postgres` on PATH",
        ));
    }
    python::prepare(workspace)
}

/// Installs Redis, which nothing but a benchmark needs.
pub(crate) fn redis(workspace: &Workspace) -> Result<(), TaskError> {
    if !redis::is_installed() {
        apt::install(&workspace.shell, &redis::PACKAGES)?;
    }
    match redis::is_installed() {
        true => Ok(()),
        false => Err(TaskError::message(
            "Redis's programs are still missing: put the folder with `redis-server` and `redis-benchmark` on PATH",
        )),
    }
}

/// Installs beanstalkd, which nothing but a benchmark needs.
pub(crate) fn beanstalkd(workspace: &Workspace) -> Result<(), TaskError> {
    if !beanstalkd::is_installed() {
        apt::install(&workspace.shell, &beanstalkd::PACKAGES)?;
    }
    match beanstalkd::is_installed() {
        true => Ok(()),
        false => Err(TaskError::message(
            "beanstalkd is still missing: put the folder with it on PATH",
        )),
    }
}
