"""Reads a server's timelines with Mastodon.py, paging both ways.

Usage: read_timelines.py BASE_URL LIST_ID; prints one JSON object.
"""

import json
import sys

from mastodon import Mastodon


def backward(first_page, client):
    """All IDs by following `next` links, newest first."""
    ids, page = [], first_page
    while page:
        ids += [str(status.id) for status in page]
        page = client.fetch_next(page)
    return ids


def forward(read):
    """All IDs by `min_id`, oldest first."""
    ids, newest = [], "0"
    while True:
        page = read(newest)
        if not page:
            return ids
        newest = str(page[0].id)
        ids += [str(status.id) for status in reversed(page)]


def main():
    base_url, list_id, token = sys.argv[1:]
    client = Mastodon(api_base_url=base_url, access_token=token)
    public = backward(client.timeline_public(limit=40), client)
    print(
        json.dumps(
            {
                "public_backward": public,
                "public_forward": forward(
                    lambda newest: client.timeline_public(min_id=newest, limit=40)
                ),
                "list_backward": backward(
                    client.timeline_list(list_id, limit=40), client
                ),
                "server": client.instance().title,
                "lists": [entry.title for entry in client.lists()],
                "one": str(client.status(public[-1]).id),
            }
        )
    )


if __name__ == "__main__":
    main()
