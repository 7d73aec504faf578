"""Reads a server with each method of Mastodon.py whose route Driftline has.

Usage: mastodon_client.py BASE_URL TOKEN LIST_ID EDITED_ID; prints one JSON object. A line on standard
output before it says that the streams are open; then posts have to come.
"""

import json
import sys
import threading

from mastodon import Mastodon, StreamListener

PATIENCE = 60


class Listener(StreamListener):
    """Notes the first status and the first edit of a stream."""

    def __init__(self):
        self.heard = threading.Event()
        self.first = None

    def on_update(self, status):
        if self.first is None:
            self.first = str(status.id)
        self.heard.set()


def ids(page):
    return [str(status.id) for status in page]


def backward(client, page):
    """All IDs by following `next` links, newest first."""
    found = []
    while page:
        found += ids(page)
        page = client.fetch_next(page)
    return found


def forward(client, page):
    """All IDs by following `prev` links, oldest first."""
    found = []
    while page:
        found += reversed(ids(page))
        page = client.fetch_previous(page)
    return found


def streamed(client, list_id):
    """What each way to stream brings first."""
    ways = {
        "public": lambda listener: client.stream_public(listener, run_async=True),
        "remote": lambda listener: client.stream_public(
            listener, remote=True, run_async=True
        ),
        "list": lambda listener: client.stream_list(
            list_id, listener, run_async=True
        ),
        "local": lambda listener: client.stream_local(listener, run_async=True),
        "media": lambda listener: client.stream_public(
            listener, only_media=True, run_async=True
        ),
    }
    listeners = {name: Listener() for name in ways}
    handles = [ways[name](listener) for name, listener in listeners.items()]
    print("streaming", flush=True)
    heard = {
        name: listeners[name].heard.wait(PATIENCE)
        for name in ["public", "remote", "list"]
    }
    # What came to the others would have come before.
    heard |= {name: listeners[name].heard.is_set() for name in ["local", "media"]}
    for handle in handles:
        handle.close()
    first = listeners["public"].first
    return heard, first and str(client.status(first).id)


def over_a_web_socket(client, list_id):
    """What one connection with several subscriptions brings first."""
    listeners = {"public": Listener(), "list": Listener()}
    handle = client.stream_open_websocket()
    client.stream_public(listeners["public"], websocket_handle=handle)
    client.stream_list(list_id, listeners["list"], websocket_handle=handle)
    heard = {name: it.heard.wait(PATIENCE) for name, it in listeners.items()}
    handle.close()
    return heard


def main():
    base_url, token, list_id, edited_id = sys.argv[1:]
    anonymous = Mastodon(api_base_url=base_url)
    client = Mastodon(api_base_url=base_url, access_token=token)
    heard, first = streamed(client, list_id)
    read = {
        "heard": heard,
        "first": first,
        "over_a_web_socket": over_a_web_socket(client, list_id),
        "healthy": client.stream_healthy(),
    }
    page = anonymous.timeline_public(limit=40)
    max_id = page[0].id
    down = ids(page) + backward(anonymous, anonymous.fetch_next(page))
    lowest = down[-1]
    since = down[5]
    on_list = client.timeline_list(list_id, max_id=max_id, limit=40)
    read |= {
        "down": down,
        "remaining": ids(
            anonymous.fetch_remaining(
                anonymous.timeline_public(max_id=max_id, limit=40)
            )
        ),
        "up": forward(anonymous, anonymous.timeline_public(min_id=0, limit=40)),
        "since": ids(anonymous.timeline_public(since_id=since, max_id=max_id)),
        "named": ids(anonymous.timeline("public", max_id=max_id)),
        "remote": ids(anonymous.timeline_public(remote=True, max_id=max_id)),
        "local": ids(anonymous.timeline_local()),
        "media": ids(anonymous.timeline_public(only_media=True)),
        "list": backward(client, on_list),
        "list_media": ids(client.timeline_list(list_id, only_media=True)),
        "lists": [[str(it.id), it.title] for it in client.lists()],
        "one_list": client.list(list_id).title,
        "status": str(anonymous.status(lowest).id),
        "thread": [
            ids(anonymous.status_context(lowest).ancestors),
            ids(anonymous.status_context(lowest).descendants),
        ],
        "versions": len(anonymous.status_history(edited_id)),
        "instances": [
            anonymous.instance().title,
            anonymous.instance_v1().title,
            anonymous.instance_v2().title,
        ],
        "version": client.retrieve_mastodon_version(),
        "can": client.verify_minimum_version("4.3.0"),
        "available": anonymous.timeline_is_available("public"),
    }
    try:
        anonymous.lists()
        read["refused"] = False
    except Exception as error:
        read["refused"] = type(error).__name__
    print(json.dumps(read))


if __name__ == "__main__":
    main()
