"""What the clients of both libraries do.

    calls ADDRESS AGENT...            every method, and refused agents, as JSON
    take FILE COUNT ADDRESS...        COUNT IDs, from the addresses in turn

`take` writes two numbers of 8 bytes for each ID, the least significant byte
first: the ID, and the Unix time in microseconds when it had arrived.
"""

import array
import json
import sys
import time


def main(connect, Refused):
    """`connect(host, port, strict)` gives a function of a method and its arguments."""
    task, *arguments = sys.argv[1:]
    if task == "calls":
        address, *agents = arguments
        answers = {
            name: calls(connect(*split(address), strict), Refused, agents)
            for name, strict in [("strict", True), ("lax", False)]
        }
        json.dump(answers, sys.stdout)
    elif task == "take":
        path, count, *addresses = arguments
        clients = [connect(*split(address), True) for address in addresses]
        take(clients, int(count), path)
    else:
        sys.exit(f"no task {task!r}")


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


def take(clients, count, path):
    rows = array.array("Q")
    append, now_ns = rows.append, time.time_ns
    for _ in range(count // len(clients)):
        for call in clients:
            append(call("get_id", "taker"))
            append(now_ns() // 1000)
    if sys.byteorder == "big":
        rows.byteswap()
    with open(path, "wb") as file:
        rows.tofile(file)


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)
