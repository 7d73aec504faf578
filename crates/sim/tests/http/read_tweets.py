"""Reads both of Twitter's APIs with tweepy and prints what it parsed as JSON.

Arguments: the address of version 1.1, and that of version 2.
"""

import json
import sys

import tweepy
from requests.adapters import HTTPAdapter

KEYS = ("ck", "consumer secret", "1-token", "token/secret&")
LISTED = 1
READER = 1
ACCOUNT = 77


class Redirected(HTTPAdapter):
    """Sends what is meant for an https host to a plain one; signatures stay."""

    def __init__(self, base):
        super().__init__()
        self.base = base

    def send(self, request, **options):
        scheme, _, rest = request.url.partition("://")
        host, _, path = rest.partition("/")
        request.headers["Host"] = host
        request.url = f"{self.base}/{path}"
        return super().send(request, **options)


def through(session, base):
    session.trust_env = False
    session.mount("https://", Redirected(base))


def first_version(base):
    host = base.partition("://")[2]
    api = tweepy.API(tweepy.OAuth1UserHandler(*KEYS), host=host)
    through(api.session, base)
    pages = {}
    for name, call, options in [
        ("home", api.home_timeline, {}),
        ("user", api.user_timeline, {"user_id": ACCOUNT}),
        ("mentions", api.mentions_timeline, {}),
        ("list", api.list_timeline, {"list_id": LISTED}),
    ]:
        cursor = tweepy.Cursor(call, count=150, tweet_mode="extended", **options)
        pages[name] = [status.id for status in cursor.items()]
    last = api.last_response.headers
    newest = api.home_timeline(count=50, since_id=pages["home"][80])
    assert [status.id for status in newest] == pages["home"][:50]
    asked = pages["home"][:98] + [12, 13]
    found = api.lookup_statuses(asked, tweet_mode="extended")
    mapped = api.lookup_statuses(asked, map=True)[0]
    too_many = None
    try:
        api.lookup_statuses(pages["home"][:101])
    except tweepy.Forbidden as refusal:
        too_many = refusal.api_codes
    repost = next(it for it in found if hasattr(it, "retweeted_status"))
    return {
        "pages": pages,
        "limit": last["x-rate-limit-limit"],
        "remaining": last["x-rate-limit-remaining"],
        "reset": last["x-rate-limit-reset"],
        "me": api.verify_credentials().id,
        "asked": asked,
        "found": [
            {
                "id": status.id,
                "text": status.full_text,
                "created_at": status.created_at.isoformat(),
                "likes": status.favorite_count,
                "retweets": status.retweet_count,
            }
            for status in found
        ],
        "mapped": mapped.id if hasattr(mapped, "id") else None,
        "too_many": too_many,
        "repost_of": repost.retweeted_status.id,
        "authors": sorted({status.author.id for status in api.user_timeline(user_id=ACCOUNT)}),
    }


def client(base):
    made = tweepy.Client(
        consumer_key=KEYS[0],
        consumer_secret=KEYS[1],
        access_token=KEYS[2],
        access_token_secret=KEYS[3],
        bearer_token="app",
    )
    through(made.session, base)
    return made


def second_version(base):
    x = client(base)
    shown = {
        "tweet_fields": ["created_at", "public_metrics", "referenced_tweets"],
        "expansions": ["author_id", "referenced_tweets.id"],
        "user_fields": ["created_at"],
    }
    pages = {}
    for name, call, arguments in [
        ("home", x.get_home_timeline, {"user_auth": True}),
        ("user", x.get_users_tweets, {"id": ACCOUNT}),
        ("mentions", x.get_users_mentions, {"id": READER}),
        ("list", x.get_list_tweets, {"id": LISTED}),
    ]:
        walk = tweepy.Paginator(call, max_results=100, **arguments)
        pages[name] = [tweet.id for tweet in walk.flatten()]
    asked = pages["home"][:98] + [12, 13]
    answer = x.get_tweets(asked, **shown)
    newer = x.get_home_timeline(since_id=pages["home"][10], max_results=100, user_auth=True)
    requests = client(base)
    requests.return_type = type(requests.session.get(base.replace("http:", "https:")))
    headers = requests.get_tweets(asked).headers
    capped = None
    try:
        x.get_tweets(list(range(1, 102)))
    except tweepy.BadRequest as refusal:
        capped = refusal.api_messages
    return {
        "pages": pages,
        "newer": [tweet.id for tweet in newer.data],
        "me": x.get_me().data.id,
        "asked": asked,
        "limit": headers["x-rate-limit-limit"],
        "remaining": headers["x-rate-limit-remaining"],
        "found": [
            {
                "id": tweet.id,
                "text": tweet.text,
                "created_at": tweet.created_at.isoformat(),
                "metrics": tweet.public_metrics,
                "author": tweet.author_id,
                "reposts": [it.id for it in tweet.referenced_tweets or []],
            }
            for tweet in answer.data
        ],
        "errors": [[it["resource_id"], it["title"]] for it in answer.errors],
        "users": [user.id for user in answer.includes["users"]],
        "originals": [tweet.id for tweet in answer.includes["tweets"]],
        "refused": capped,
    }


json.dump({"first": first_version(sys.argv[1]), "second": second_version(sys.argv[2])}, sys.stdout)
