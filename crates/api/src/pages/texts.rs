//! What the pages and mails say, in each language.

/// Defines the texts, each in all languages.
macro_rules! texts {
    ($($name:ident: $english:literal, $japanese:literal, $portuguese:literal;)+) => {
        /// The texts of one language. `{}` stands for a value.
        pub(crate) struct Texts {
            $(pub(crate) $name: &'static str,)+
        }

        pub(super) static ENGLISH: Texts = Texts { $($name: $english,)+ };
        pub(super) static JAPANESE: Texts = Texts { $($name: $japanese,)+ };
        pub(super) static PORTUGUESE: Texts = Texts { $($name: $portuguese,)+ };
    };
}

texts! {
    error: "This did not work", "うまくいきませんでした", "Não funcionou";
    internal:
        "Something went wrong on our side. Try again later.",
        "サーバーで問題が起きました。しばらくしてからもう一度お試しください。",
        "Algo correu mal no nosso lado. Tente de novo mais tarde.";
    store_away:
        "The server cannot use its data at the moment. Try again in a minute.",
        "サーバーは今、データを利用できません。1 分ほど待ってからもう一度お試しください。",
        "O servidor está sem acesso ao banco de dados neste momento. Tente de novo daqui a um minuto.";
    bad_request:
        "The request is malformed. Go back to the app and begin again.",
        "リクエストの形式が正しくありません。アプリに戻って最初からやり直してください。",
        "O pedido está malformado. Volte ao aplicativo e comece de novo.";
    not_allowed: "This is not allowed.", "この操作は許可されていません。", "Isto não é permitido.";
    too_often:
        "That was tried too often. Wait a while, then try again.",
        "試行回数が多すぎます。しばらく待ってからもう一度お試しください。",
        "Houve tentativas demais. Espere um pouco e tente de novo.";
    form_expired:
        "This page is out of date. Check what you entered and send it again.",
        "このページは古くなっています。入力内容を確認して、もう一度送信してください。",
        "Esta página está desatualizada. Confira o que escreveu e envie de novo.";
    languages: "Languages", "言語", "Idiomas";
    read_with_app:
        "To log in and read, enter this address in a Mastodon app:",
        "ログインして読むには、Mastodonのアプリに次のアドレスを入力してください。",
        "Para entrar e ler, escreva este endereço em um aplicativo do Mastodon:";
    shown_in_apps:
        "Apps that are logged in here show it. Search there for:",
        "ここにログインしたアプリで表示されます。アプリで次のように検索してください。",
        "Os aplicativos que entraram aqui mostram isto. Procure neles por:";
    about_server: "About this server", "このサーバーについて", "Sobre este servidor";
    for_programs: "For programs: the API", "プログラム向け：API", "Para programas: a API";
    log_in: "Log in", "ログイン", "Entrar";
    log_out: "Log out", "ログアウト", "Sair";
    logged_in: "You are logged in", "ログインしています", "Você entrou";
    logged_in_as: "Logged in as", "ログイン中のアカウント:", "Você entrou como";
    go_to_app:
        "You can close this page and go back to your app.",
        "このページを閉じて、アプリに戻ってください。",
        "Pode fechar esta página e voltar ao aplicativo.";
    who:
        "Account name or mail address",
        "アカウント名またはメールアドレス",
        "Nome da conta ou endereço de e-mail";
    passphrase: "Passphrase", "パスフレーズ", "Frase secreta";
    wrong_passphrase:
        "No account has that name or address with that passphrase.",
        "アカウント名かメールアドレス、またはパスフレーズが違います。",
        "Nenhuma conta tem esse nome ou endereço com essa frase secreta.";
    wait:
        "That was tried too often. Try again in {} s.",
        "試行回数が多すぎます。{} 秒後にもう一度お試しください。",
        "Houve tentativas demais. Tente de novo em {} s.";
    awaits_approval:
        "This account still waits for approval.",
        "このアカウントは承認待ちです。",
        "Esta conta ainda espera aprovação.";
    frozen:
        "This account is frozen. The operator of this server knows more.",
        "このアカウントは凍結されています。サーバーの管理者にお問い合わせください。",
        "Esta conta está congelada. Pergunte a quem administra este servidor.";
    no_account: "No account yet?", "アカウントをお持ちでない方は", "Ainda não tem conta?";
    have_account: "Do you have an account?", "アカウントをお持ちの方は", "Já tem uma conta?";
    unknown_app:
        "This server does not know the app. Remove the account from the app and add it again.",
        "このサーバーに登録されていないアプリです。アプリからアカウントを削除して、追加し直してください。",
        "Este servidor não conhece o aplicativo. Remova a conta do aplicativo e adicione-a de novo.";
    wrong_redirect:
        "The app wants to send you to an address that it has not registered.",
        "アプリが登録していないアドレスへ移動させようとしています。",
        "O aplicativo quer levar você a um endereço que não registrou.";
    wrong_scope:
        "The app asks for more than it has registered for.",
        "アプリが登録した範囲を超える権限を求めています。",
        "O aplicativo pede mais do que registrou.";
    consent: "Let this app in?", "アプリを許可しますか?", "Autorizar este aplicativo?";
    wants_access:
        "asks for access to your account",
        "があなたのアカウント",
        "pede acesso à sua conta";
    wants_access_end: ".", " へのアクセスを求めています。", ".";
    may: "It would be allowed to:", "許可すると、次のことができるようになります:", "Ele poderia:";
    leads_to:
        "After that you go on to",
        "このあと次のアドレスへ移動します:",
        "Depois você segue para";
    allow: "Allow", "許可する", "Autorizar";
    deny: "Deny", "拒否する", "Recusar";
    denied:
        "You have denied access. The app may do nothing.",
        "アクセスを拒否しました。アプリは何もできません。",
        "Você recusou o acesso. O aplicativo não pode fazer nada.";
    not_you: "Not your account?", "あなたのアカウントではありませんか?", "Não é a sua conta?";
    code: "Your code", "認証コード", "O seu código";
    copy_code:
        "Copy this code into",
        "このコードをコピーして、アプリに貼り付けてください:",
        "Copie este código para";
    copy_code_end: ".", "", ".";
    code_lasts:
        "It works once, within 10 minutes.",
        "10 分以内に 1 回だけ使えます。",
        "Vale uma vez, durante 10 minutos.";
    sign_up: "Sign up", "新規登録", "Criar conta";
    sign_up_closed:
        "New accounts are made by the operator of this server only.",
        "このサーバーでは、管理者だけがアカウントを作成できます。",
        "Neste servidor só quem o administra cria contas.";
    name: "Account name", "アカウント名", "Nome da conta";
    name_hint:
        "1 to 64 letters A to Z, digits, dots, hyphens, underscores or tildes. It is public.",
        "英字・数字・ピリオド・ハイフン・アンダースコア・チルダで 1〜64 文字。公開されます。",
        "De 1 a 64 letras de A a Z, algarismos, pontos, hífens, sublinhados ou tis. É público.";
    mail: "Mail address", "メールアドレス", "Endereço de e-mail";
    mail_hint:
        "We send a link there.",
        "確認用のリンクをお送りします。",
        "Enviamos um link para lá.";
    passphrase_hint:
        "At least 8 characters. Some words in a row are good.",
        "8 文字以上。いくつかの言葉を並べるのがおすすめです。",
        "Pelo menos 8 caracteres. Algumas palavras seguidas são uma boa escolha.";
    reason: "Why do you want to be here?", "登録を希望する理由", "Por que quer estar aqui?";
    reason_hint:
        "Whoever approves accounts reads it.",
        "アカウントを承認する人が読みます。",
        "Quem aprova as contas lê isto.";
    bad_name:
        "This cannot be an account name.",
        "アカウント名として使えません。",
        "Isto não pode ser o nome de uma conta.";
    name_taken:
        "Somebody has this name. Choose another one.",
        "この名前は使われています。別の名前を選んでください。",
        "Alguém já tem este nome. Escolha outro.";
    bad_mail:
        "This is not a mail address.",
        "メールアドレスの形式が正しくありません。",
        "Isto não é um endereço de e-mail.";
    short_passphrase:
        "This is too short: 8 characters at least.",
        "短すぎます。8 文字以上にしてください。",
        "É curta demais: pelo menos 8 caracteres.";
    long_passphrase:
        "This is too long: 512 characters at most.",
        "長すぎます。512 文字以内にしてください。",
        "É longa demais: no máximo 512 caracteres.";
    reason_needed: "Write a sentence.", "一文でもよいので書いてください。", "Escreva uma frase.";
    mail_sent: "Look at your mail", "メールをご確認ください", "Veja o seu e-mail";
    mail_sent_text:
        "A mail is on its way to {}. Open the link in it to go on.",
        "{} にメールをお送りしています。届いたメールのリンクを開いてください。",
        "Um e-mail está a caminho de {}. Abra o link que está nele para continuar.";
    mail_sent_hint:
        "The link works for 7 days. Nothing came after some minutes? Look among the unwanted mail, then have it sent again.",
        "リンクは 7 日間有効です。数分たっても届かないときは、迷惑メールフォルダーを確認してから、もう一度送ってください。",
        "O link vale durante 7 dias. Não chegou nada depois de alguns minutos? Procure no lixo eletrônico e depois peça outro envio.";
    resend: "Send it again", "もう一度送る", "Enviar de novo";
    wrong_mail:
        "Is the address wrong? Use the same name and passphrase with the right one:",
        "メールアドレスを間違えましたか？同じ名前とパスフレーズで、正しいアドレスを入力してください:",
        "O endereço está errado? Use o mesmo nome e a mesma frase-senha com o certo:";
    confirm: "Confirm your address", "メールアドレスの確認", "Confirme o seu endereço";
    confirm_text:
        "One click, and your account is there.",
        "ボタンを押すと、アカウントが作成されます。",
        "Um clique, e a sua conta está criada.";
    confirmed:
        "Your address is confirmed",
        "メールアドレスを確認しました",
        "O seu endereço está confirmado";
    confirmed_text:
        "You can log in now.",
        "ログインできるようになりました。",
        "Agora você pode entrar.";
    confirmed_waits:
        "Somebody has to approve your account before you can log in.",
        "承認されるとログインできるようになります。",
        "Alguém precisa aprovar a sua conta antes que você possa entrar.";
    link_invalid:
        "This link is not valid, or not valid any more. Sign up again.",
        "リンクが無効か、期限が切れています。もう一度登録してください。",
        "Este link não é válido, ou já não é. Crie a conta de novo.";
    confirm_subject: "Confirm your address", "メールアドレスの確認", "Confirme o seu endereço";
    confirm_mail:
        "Somebody, probably you, signed up at {server} as {name}.\n\nOpen this link to confirm your address:\n\n{link}\n\nIt works for 7 days. If it was not you, do nothing.\n",
        "{server} に {name} として登録の申し込みがありました。\n\n次のリンクを開いて、メールアドレスを確認してください:\n\n{link}\n\nリンクは 7 日間有効です。お心当たりがない場合は、何もする必要はありません。\n",
        "Alguém, provavelmente você, criou uma conta em {server} com o nome {name}.\n\nAbra este link para confirmar o seu endereço:\n\n{link}\n\nEle vale durante 7 dias. Se não foi você, não faça nada.\n";
    known_subject:
        "You have an account already",
        "すでにアカウントがあります",
        "Você já tem uma conta";
    known_mail:
        "Somebody, probably you, signed up at {server} with this address. You have an account there already:\n\n{link}\n\nIf it was not you, do nothing.\n",
        "{server} に、このメールアドレスで登録の申し込みがありました。すでにアカウントがあります:\n\n{link}\n\nお心当たりがない場合は、何もする必要はありません。\n",
        "Alguém, provavelmente você, quis criar uma conta em {server} com este endereço. Você já tem uma conta lá:\n\n{link}\n\nSe não foi você, não faça nada.\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_values_that_they_are_given() {
        for texts in [&ENGLISH, &JAPANESE, &PORTUGUESE] {
            for (text, places) in [
                (texts.wait, &["{}"] as &[&str]),
                (texts.mail_sent_text, &["{}"]),
                (texts.confirm_mail, &["{server}", "{name}", "{link}"]),
                (texts.known_mail, &["{server}", "{link}"]),
            ] {
                assert!(places.iter().all(|place| text.contains(place)), "{text}");
            }
        }
    }
}
