"""What the clients of both libraries do: every method, and refused agents, as JSON.

    ADDRESS AGENT...
"""

import json
import sys


def main(connect, Refused):
    """`connect(host, port, strict)` gives a function of a method and its arguments."""
    address, *agents = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    answers = {
        name: calls(connect(host, int(port), strict), Refused, agents)
        for name, strict in [("strict", True), ("lax", False)]
    }
    json.dump(answers, sys.stdout)


def calls(call, Refused, agents):
    def refusal(method, *arguments):
        try:
            return {"answered": call(method, *arguments)}
        except Refused as refused:
            return {"type": refused.type, "message": refused.message}

    return {
        "worker": call("get_worker_id"),
        "datacenter": call("get_datacenter_id"),
        "timestamp": call("get_timestamp"),
        "ids": [str(call("get_id", "a-Client-2010")) for _ in range(3)],
        "refused": [refusal("get_id", agent) for agent in agents],
        "unnamed": refusal("get_id", None),
        "unknown": refusal("get_weather"),
        "afterwards": str(call("get_id", "z")),
    }
