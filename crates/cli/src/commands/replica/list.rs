//! `replica list`: the lists with their accounts.

use driftline_core::sync::ObjectKind;
use driftline_replica::Replica;
use serde::Serialize;

use crate::{error::CliError, output, shown::plain};

/// A list with its accounts.
#[derive(Serialize)]
struct Shown {
    key: String,
    title: String,
    accounts: Vec<String>,
}

/// Shows the lists with their accounts.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn show(replica: &Replica, json: bool) -> Result<(), CliError> {
    let lists = replica.objects(Some(ObjectKind::List.name())).await?;
    let members = replica.objects(Some(ObjectKind::ListMember.name())).await?;
    if lists.is_empty() && !json {
        return output::line("no lists");
    }
    for list in lists {
        let of_list = members.iter().filter_map(|member| {
            let (key, acct) = member.key.list_and_acct()?;
            (key == list.key).then(|| acct.to_owned())
        });
        let shown = Shown {
            key: list.key.to_string(),
            title: list.value["title"].as_str().unwrap_or_default().to_owned(),
            accounts: of_list.collect(),
        };
        output::reply(json, &shown, lines)?;
    }
    Ok(())
}

fn lines(of: &Shown) -> Vec<String> {
    let accounts = of.accounts.iter().map(|acct| format!("   {}", plain(acct)));
    let title = format!("{}  ({})", plain(&of.title), of.key);
    std::iter::once(title).chain(accounts).collect()
}
