//! Scopes in words, in each language.

use super::language::Language;
use crate::auth::Scope;

/// What a scope lets an app do.
pub(crate) fn scope_in_words(scope: Scope, language: Language) -> String {
    let column = match language {
        Language::English => 0,
        Language::Japanese => 1,
        Language::Portuguese => 2,
    };
    let words = |rows: &[Row], name: &str| {
        let row = rows.iter().find(|(known, _)| *known == name);
        row.map(|(_, words)| words[column])
    };
    let name = scope.name();
    if let Some(whole) = words(WHOLE, name) {
        return whole.to_owned();
    }
    let (verb, thing) = name.rsplit_once(':').unwrap_or(("", name));
    match (words(VERBS, verb), words(THINGS, thing)) {
        (Some(verb), Some(thing)) => verb.replace("{}", thing),
        _ => name.to_owned(),
    }
}

/// A part of a scope's name, and its words by language.
type Row = (&'static str, [&'static str; 3]);

macro_rules! words {
    ($($name:literal: $english:literal, $japanese:literal, $portuguese:literal;)+) => {
        &[$(($name, [$english, $japanese, $portuguese])),+]
    };
}

/// Scopes that are not one verb and one thing.
const WHOLE: &[Row] = words! {
    "read": "see everything in your account", "アカウントのすべてを見る", "ver tudo na sua conta";
    "write":
        "change everything in your account",
        "アカウントのすべてを変更する",
        "alterar tudo na sua conta";
    "follow":
        "follow, mute and block for you",
        "フォロー・ミュート・ブロックをする",
        "seguir, silenciar e bloquear por você";
    "push": "notify you", "プッシュ通知を送る", "enviar notificações a você";
    "profile":
        "know your name and picture",
        "名前とアイコンを知る",
        "saber o seu nome e ver a sua imagem";
    "admin:read":
        "see everything as a moderator",
        "モデレーターとしてすべてを見る",
        "ver tudo como moderador";
    "admin:write":
        "change everything as a moderator",
        "モデレーターとしてすべてを変更する",
        "alterar tudo como moderador";
    "driftline:sources":
        "add, change and remove your sources",
        "ソースを追加・変更・削除する",
        "adicionar, alterar e remover as suas fontes";
    "driftline:publish":
        "show your sources to the world",
        "ソースを全員に公開する",
        "mostrar as suas fontes a todo o mundo";
};
/// What may be done, each to a thing in place of `{}`.
const VERBS: &[Row] = words! {
    "read": "see {}", "{}を見る", "ver {}";
    "write": "change {}", "{}を変更する", "alterar {}";
    "admin:read": "see {} of all people", "全員の{}を見る", "ver {} de todas as pessoas";
    "admin:write":
        "change {} of all people",
        "全員の{}を変更する",
        "alterar {} de todas as pessoas";
};
/// What it may be done to.
const THINGS: &[Row] = words! {
    "accounts":
        "your profile and account",
        "プロフィールとアカウント",
        "o seu perfil e a sua conta";
    "blocks": "whom you block", "ブロックしている人", "quem você bloqueia";
    "bookmarks": "your bookmarks", "ブックマーク", "os seus itens salvos";
    "favourites": "your favourites", "お気に入り", "os seus favoritos";
    "filters": "your filters", "フィルター", "os seus filtros";
    "follows": "whom you follow", "フォローしている人", "quem você segue";
    "lists": "your lists", "リスト", "as suas listas";
    "mutes": "whom you mute", "ミュートしている人", "quem você silencia";
    "notifications": "your notifications", "通知", "as suas notificações";
    "search": "what you search for", "検索", "o que você procura";
    "statuses": "your posts", "投稿", "as suas publicações";
    "conversations": "your conversations", "会話", "as suas conversas";
    "media": "your media", "メディア", "as suas mídias";
    "reports": "reports", "通報", "denúncias";
    "domain_allows": "allowed domains", "許可したドメイン", "domínios permitidos";
    "domain_blocks": "blocked domains", "ブロックしたドメイン", "domínios bloqueados";
    "ip_blocks":
        "blocked addresses of computers",
        "ブロックした IP アドレス",
        "endereços IP bloqueados";
    "email_domain_blocks":
        "blocked domains of mail",
        "ブロックしたメールのドメイン",
        "domínios de e-mail bloqueados";
    "canonical_email_blocks":
        "blocked mail addresses",
        "ブロックしたメールアドレス",
        "endereços de e-mail bloqueados";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_has_words_in_every_language() {
        for language in Language::ALL {
            let mut all: Vec<String> = Vec::new();
            for scope in Scope::ALL {
                let words = scope_in_words(*scope, language);
                assert!(
                    !words.contains('{') && words != scope.name(),
                    "{scope:?}: {words}"
                );
                assert!(!all.contains(&words), "{scope:?}: {words}");
                all.push(words);
            }
        }
    }
}
