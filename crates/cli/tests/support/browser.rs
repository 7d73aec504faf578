//! A browser without JavaScript.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this"
)]

use reqwest::{Client, RequestBuilder, redirect::Policy};
use url::form_urlencoded::Serializer;

/// A browser that keeps cookies and sends forms.
pub struct Browser {
    client: Client,
    base: String,
    language: String,
    cookies: Vec<(String, String)>,
}

impl Browser {
    /// Of somebody who reads that language.
    pub fn new(base: &str, language: &str) -> Self {
        Self {
            client: client(),
            base: base.to_owned(),
            language: language.to_owned(),
            cookies: Vec::new(),
        }
    }

    /// A page's status and text.
    pub async fn get(&mut self, path: &str) -> (u16, String) {
        let request = self.client.get(format!("{}{path}", self.base));
        self.send(request).await
    }

    /// Fills the first form of a page, and sends it there.
    pub async fn submit(&mut self, page: &str, to: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let (status, body) = self.get(page).await;
        if status != 200 {
            return (status, body);
        }
        let mut form = Serializer::new(String::new());
        form.extend_pairs(hidden(&body)).extend_pairs(fields);
        let request = self.client.post(format!("{}{to}", self.base));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(form.finish())).await
    }

    /// Signs up with the address `NAME@mail.example`.
    pub async fn sign_up(&mut self, name: &str, passphrase: &str) -> (u16, String) {
        let mail = format!("{name}@mail.example");
        let fields = [("name", name), ("mail", &mail), ("passphrase", passphrase)];
        self.submit("/sign-up", "/sign-up", &fields).await
    }

    pub async fn log_in(&mut self, who: &str, passphrase: &str) -> (u16, String) {
        let fields = [("who", who), ("passphrase", passphrase)];
        self.submit("/log-in", "/log-in", &fields).await
    }

    async fn send(&mut self, request: RequestBuilder) -> (u16, String) {
        let cookies = self.cookies.iter();
        let cookies: Vec<String> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = request
            .header("cookie", cookies.join("; "))
            .header("accept-language", &self.language)
            .header("sec-fetch-site", "same-origin");
        let answer = request.send().await.unwrap();
        for set in answer.headers().get_all("set-cookie") {
            let set = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = set.split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// A client that follows no redirection.
pub fn client() -> Client {
    // Another test of the process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().redirect(Policy::none()).no_proxy();
    client.build().unwrap()
}

/// The hidden fields of a page's first form.
fn hidden(page: &str) -> Vec<(String, String)> {
    let form = page.split_once("<form").map_or("", |(_, rest)| rest);
    let form = form.split("</form>").next().unwrap();
    let value = |input: &str, name: &str| {
        let (_, rest) = input.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let inputs = form.split("<input").skip(1);
    let inputs = inputs.filter(|input| input.contains("type=\"hidden\""));
    inputs
        .filter_map(|input| Some((value(input, "name")?, value(input, "value")?)))
        .collect()
}
