"""Reads what an account may with each method of Mastodon.py whose route Driftline has.

Usage: reading_client.py BASE_URL PASSPHRASE; logs in as ann@mail.example and bob@mail.example, and prints one
JSON object. A line before it says that the stream is open; then posts of all authors have to come.
"""

import json
import re
import sys

from mastodon import Mastodon

from mastodon_client import PATIENCE, Listener, backward, ids

SCOPES = ["read", "write", "follow"]


def logged_in(url, mail, passphrase):
    client_id, secret = Mastodon.create_app("reader", scopes=SCOPES, api_base_url=url)
    client = Mastodon(client_id=client_id, client_secret=secret, api_base_url=url)
    client.log_in(username=mail, password=passphrase, scopes=SCOPES, allow_http=True)
    return client


def marked(ann, ids_of_author):
    first, second = ids_of_author[0], ids_of_author[1]
    ann.status_bookmark(first)
    ann.status_favourite(first)
    ann.status_favourite(second)
    status = ann.status(first)
    found = {
        "bookmarks": ids(ann.bookmarks()),
        "favourites": ids(ann.favourites()),
        "favourited_by": [str(it.acct) for it in ann.status_favourited_by(first)],
        "marked": [status.bookmarked, status.favourited],
    }
    ann.status_unbookmark(first)
    ann.status_unfavourite(first)
    ann.status_unfavourite(second)
    found["unmarked"] = ids(ann.bookmarks()) + ids(ann.favourites())
    return found


def filtered(ann, status):
    word = re.findall(r"\w{3,}", re.sub(r"<[^>]*>", " ", status.content))[0]
    made = ann.create_filter_v2(
        "words",
        ["home"],
        "warn",
        keywords_attributes=[{"keyword": word, "whole_word": True}],
    )
    shown = ann.timeline_home(max_id=int(status.id) + 1, limit=1)[0]
    found = {
        "filters": [it.title for it in ann.filters_v2()],
        "keywords": [it.keyword == word for it in ann.filter_keywords_v2(made.id)],
        "filtered": [it.filter.title for it in shown.filtered],
    }
    ann.delete_filter_v2(made.id)
    return found


def listed(ann, author, max_id):
    made = ann.list_create("few")
    ann.list_accounts_add(made.id, [author.id])
    return {
        "lists": [it.title for it in ann.lists()],
        "members": ids(ann.list_accounts(made.id)),
        "lists_of": [it.title for it in ann.account_lists(author.id)],
        "listed": backward(ann, ann.timeline_list(made.id, max_id=max_id, limit=40)),
    }


def grouped(ann):
    results = ann.grouped_notifications()
    group = results.notification_groups[0]
    key = group.group_key
    return {
        "grouped": [
            [group.type, group.notifications_count, results.accounts[0].acct],
            ids(ann.grouped_notification_accounts(key)) == [str(it) for it in group.sample_account_ids],
            ann.grouped_notification(key).notification_groups[0].group_key == key,
            ann.unread_grouped_notifications_count(),
            ann.notifications_policy().for_not_following,
        ],
    }


def related(ann, bob, author):
    ann_of_bob = bob.account_lookup("ann")
    bob.account_follow(ann_of_bob.id)
    notices = ann.notifications()
    found = {
        "notified": [[it.type, it.account.acct] for it in notices],
        "unread": ann.notifications_unread_count().count,
        **grouped(ann),
        "followers": [it.acct for it in ann.account_followers(ann.me().id)],
        "requests": ann.follow_requests(),
    }
    ann.account_mute(author.id)
    found["mutes"] = ids(ann.mutes())
    ann.account_unmute(author.id)
    ann.account_block(author.id)
    found["blocks"] = ids(ann.blocks())
    ann.account_unblock(author.id)
    return found


def main():
    url, passphrase = sys.argv[1:]
    ann, bob = (logged_in(url, f"{it}@mail.example", passphrase) for it in ["ann", "bob"])
    page = ann.timeline_public(limit=40)
    max_id = page[0].id
    author = page[1].account
    before = ids(ann.timeline_home())
    followed = ann.account_follow(author.id).following
    listener = Listener()
    stream = ann.stream_user(listener, run_async=True)
    print("streaming", flush=True)
    heard = listener.heard.wait(PATIENCE)
    stream.close()
    down, below = [], ann.timeline_public(max_id=max_id, limit=40)
    while below:
        down += [[str(it.id), str(it.account.id)] for it in below]
        below = ann.fetch_next(below)
    home = ann.timeline_home(max_id=max_id, limit=40)
    of_author = ann.account_statuses(author.id, max_id=max_id, limit=40)
    acct = author.acct
    address = home[0].url
    ann.markers_set(["home"], [home[0].id])
    read = {
        "author": str(author.id),
        "before": before,
        "followed": followed,
        "told": heard and str(ann.status(listener.first).account.id),
        "down": down,
        "home": backward(ann, home),
        "of_author": backward(ann, of_author),
        "found": [
            str(ann.account(author.id).acct) == acct,
            str(ann.account_lookup(acct).id),
            ids(ann.account_search(acct)),
            ids(ann.search(acct, result_type="accounts").accounts),
            ids(ann.search_v2(address).statuses) == [str(home[0].id)],
        ],
        "following": ids(ann.account_following(ann.me().id)),
        "relationship": ann.account_relationships(author.id)[0].following,
        "tagged": ids(ann.timeline_hashtag("nothing")),
        "thread": [len(part) for part in ann.status_context(home[0].id).values()],
        "marker": str(ann.markers_get(["home"])["home"].last_read_id) == str(home[0].id),
        "empty": [
            ann.custom_emojis(),
            ann.announcements(),
            ann.followed_tags(),
            ann.domain_blocks(),
            ann.instance_rules(),
            ann.account_featured_tags(author.id),
            ann.trending_tags(),
            ann.trending_statuses(),
            ann.trending_links(),
            ann.conversations(),
            ann.scheduled_statuses(),
            ann.suggestions_v1(),
            ann.suggestions_v2(),
            ann.endorsements(),
            ann.featured_tags(),
            ann.featured_tag_suggestions(),
            ann.directory(),
            ann.instance_activity(),
            ann.status_reblogged_by(home[0].id),
        ],
        "tag": ann.tag("nothing").name,
        "several": [
            ids(ann.statuses([home[1].id, home[0].id])) == ids([home[1], home[0]]),
            ids(ann.accounts([author.id])),
        ],
        "preferences": ann.preferences()["posting:default:visibility"],
        "app": ann.app_verify_credentials().name,
    }
    read |= marked(ann, read["home"]) | filtered(ann, home[0])
    read |= listed(ann, author, max_id) | related(ann, bob, author)
    ann.account_unfollow(author.id)
    read["after"] = ids(ann.timeline_home())
    read["others"] = [ids(bob.bookmarks()), bob.lists(), bob.filters_v2(), ids(bob.timeline_home())]
    print(json.dumps(read))


if __name__ == "__main__":
    main()
