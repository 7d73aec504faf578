//! `replica list`: the lists with their accounts.

use driftline_core::sync::ObjectKind;
use driftline_replica::Replica;
use serde_json::json;

use crate::{error::CliError, output, shown::plain};

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
            (key == list.key).then_some(acct)
        });
        let accounts: Vec<&str> = of_list.collect();
        let (key, title) = (&list.key, list.value["title"].as_str().unwrap_or_default());
        let reply = json!({ "key": key, "title": title, "accounts": accounts });
        output::reply(json, &reply, |_| {
            let accounts = accounts.iter().map(|acct| format!("   {}", plain(acct)));
            let title = format!("{}  ({key})", plain(title));
            std::iter::once(title).chain(accounts).collect()
        })?;
    }
    Ok(())
}
