//! The cookies of our pages. Over TLS their names begin with `__Host-`, so that no other host can set them.

use axum::http::{HeaderMap, HeaderValue, header::COOKIE};

use crate::App;

/// A cookie of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cookie {
    /// Who is logged in.
    Session,
    /// What form tokens are made of.
    Form,
    /// In which account somebody has logged in here before.
    Device,
}

impl Cookie {
    const fn name(self) -> &'static str {
        match self {
            Self::Session => "driftline_session",
            Self::Form => "driftline_form",
            Self::Device => "driftline_device",
        }
    }

    fn full_name(self, app: &App) -> String {
        let prefix = if is_encrypted(app) { "__Host-" } else { "" };
        format!("{prefix}{}", self.name())
    }

    /// Its value in a request; `None` if it comes twice.
    pub(crate) fn read<'h>(self, app: &App, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = self.full_name(app);
        let lines = headers.get_all(COOKIE).iter();
        let lines = lines.filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';'));
        let mut values = pairs.filter_map(|pair| {
            let (known, value) = pair.trim().split_once('=')?;
            (known == name).then_some(value)
        });
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Sets it; without a value it goes. `value` is of ours and needs no escape.
    pub(crate) fn set(
        self,
        app: &App,
        value: Option<&str>,
        lifetime_ms: i64,
    ) -> Option<HeaderValue> {
        let secure = if is_encrypted(app) { "; Secure" } else { "" };
        let age = value.map_or(0, |_| lifetime_ms.div_euclid(1000));
        let text = format!(
            "{}={}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}",
            self.full_name(app),
            value.unwrap_or_default()
        );
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Whether clients come over TLS, which ends at a proxy.
fn is_encrypted(app: &App) -> bool {
    app.public_base
        .as_ref()
        .is_some_and(|base| base.scheme() == "https")
}
