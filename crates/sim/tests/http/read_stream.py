"""Listens to a stream with Mastodon.py and prints the IDs that came as JSON.

Arguments: the server's address and the number of posts to wait for.
"""

import json
import sys

from mastodon import Mastodon, StreamListener


class Enough(Exception):
    pass


class Listener(StreamListener):
    def __init__(self, wanted):
        self.wanted = wanted
        self.heard = {"update": [], "status_update": [], "delete": []}

    def on_update(self, status):
        self.heard["update"].append(str(status.id))
        if len(self.heard["update"]) >= self.wanted:
            raise Enough

    def on_status_update(self, status):
        self.heard["status_update"].append(str(status.id))

    def on_delete(self, status_id):
        self.heard["delete"].append(str(status_id))


mastodon = Mastodon(access_token="t", api_base_url=sys.argv[1])
listener = Listener(int(sys.argv[2]))
try:
    mastodon.stream_user(listener)
except Enough:
    pass
listener.heard["server"] = mastodon.instance().title
listener.heard["healthy"] = mastodon.stream_healthy()
listener.heard["me"] = str(mastodon.account_verify_credentials().id)
listener.heard["looked_up"] = [str(it.id) for it in mastodon.statuses(listener.heard["update"][:20])]
json.dump(listener.heard, sys.stdout)
