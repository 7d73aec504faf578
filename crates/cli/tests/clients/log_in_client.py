"""Logs in with Mastodon.py: by the pages of a server, as a browser shows them, and by a passphrase."""

import html
import json
import re
import sys

import requests
from mastodon import Mastodon, MastodonError

OUT_OF_BAND = "urn:ietf:wg:oauth:2.0:oob"
SCOPES = ["read", "write", "follow"]


def hidden(page):
    """The hidden fields of a page's first form."""
    form = page.split("<form", 1)[1].split("</form>", 1)[0]
    found = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found}


def allowed(url, address, name, passphrase):
    """The code that the pages show to a person who logs in and lets the app in."""
    browser = requests.Session()
    log_in = browser.get(address)
    fields = hidden(log_in.text) | {"who": name, "passphrase": passphrase}
    consent = browser.post(f"{url}/log-in", data=fields)
    assert "Mastodon.py" in consent.text, consent.text
    fields = hidden(consent.text) | {"decision": "allow"}
    shown = browser.post(f"{url}/oauth/authorize", data=fields)
    return re.search(r'<code class="copy">([^<]*)</code>', shown.text)[1]


def outcome(call, *arguments, **named):
    """The name of the error that a call ends with."""
    try:
        call(*arguments, **named)
    except MastodonError as error:
        return type(error).__name__
    return "ok"


def main():
    url, name, mail, passphrase = sys.argv[1:]
    client_id, secret = Mastodon.create_app(
        "Mastodon.py", scopes=SCOPES, api_base_url=url, website="https://app.example"
    )
    client = Mastodon(client_id=client_id, client_secret=secret, api_base_url=url)
    address = client.auth_request_url(
        redirect_uris=OUT_OF_BAND, scopes=SCOPES, allow_http=True
    )
    code = allowed(url, address, name, passphrase)
    client.log_in(
        code=code, redirect_uri=OUT_OF_BAND, scopes=SCOPES, allow_http=True
    )
    me = client.account_verify_credentials()
    again = Mastodon(client_id=client_id, client_secret=secret, api_base_url=url)
    again.log_in(username=mail, password=passphrase, scopes=SCOPES, allow_http=True)
    read = {
        "me": [me.acct, str(me.id), me.source.privacy],
        "again": again.me().acct,
        "app": client.app_verify_credentials().name,
        "public": len(client.timeline_public(limit=5)),
        "lists": client.lists(),
        "wrong": outcome(
            again.log_in,
            username=name,
            password="x" * 9,
            scopes=SCOPES,
            allow_http=True,
        ),
        "code_again": outcome(
            Mastodon(client_id=client_id, client_secret=secret, api_base_url=url).log_in,
            code=code,
            redirect_uri=OUT_OF_BAND,
            scopes=SCOPES,
            allow_http=True,
        ),
        "revoked_by_replay": outcome(client.account_verify_credentials),
    }
    other = Mastodon(api_base_url=url, access_token=again.access_token)
    again.revoke_access_token(allow_http=True)
    read["revoked"] = outcome(other.account_verify_credentials)
    print(json.dumps(read))


main()
