//! The options that say where a token is.

use clap::Args;
use driftline_store::source::TokenLocation;

use crate::error::CliError;

/// Where a token is.
#[derive(Debug, Clone, Args)]
pub struct TokenOptions {
    /// The environment variable that holds the token: of the server's process, if one runs.
    #[arg(long, value_name = "VAR", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// The file that holds the token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
}

impl TokenOptions {
    /// The option as it is typed.
    pub fn typed(&self) -> Option<String> {
        let variable = self.token_env.as_ref().map(|name| ("env", name));
        let (kind, value) = variable.or(self.token_file.as_ref().map(|path| ("file", path)))?;
        Some(format!("--token-{kind} {value}"))
    }

    /// The location of the token, if there is one. A server may be started in another folder, so
    /// paths become absolute.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the path is not UTF-8.
    pub fn location(&self) -> Result<Option<TokenLocation>, CliError> {
        if let Some(name) = &self.token_env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(CliError::usage(format!(
                    "invalid name of an environment variable {name:?}: give the variable's name, not the token"
                )));
            }
            return Ok(Some(TokenLocation::Environment(name.clone())));
        }
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        if path.is_empty() {
            return Err(CliError::usage("the path of the token's file is empty"));
        }
        let absolute = std::path::absolute(path).ok();
        let text = absolute.and_then(|path| path.into_os_string().into_string().ok());
        text.map(|path| Some(TokenLocation::File(path)))
            .ok_or_else(|| CliError::usage(format!("invalid path {path:?}: it is not UTF-8")))
    }
}
