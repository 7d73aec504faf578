"""Prints the statuses and accounts in the cassettes of Mastodon.py's sources, one a line.

`cargo xtask setup` unpacks the sources next to the interpreter.
"""

import glob
import gzip
import json
import sys

import yaml


def show(value):
    if isinstance(value, dict):
        if value.keys() >= {"id", "account", "content", "visibility"}:
            print(json.dumps({"status": value}))
        elif value.keys() >= {"id", "acct", "note"}:
            print(json.dumps({"account": value}))
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            show(item)


for path in glob.glob(sys.prefix + "/sources/*/tests/cassettes*/*.yaml"):
    with open(path) as file:
        cassette = yaml.load(file, yaml.CSafeLoader)
    for call in cassette.get("interactions", []):
        body = call["response"]["body"]["string"] or b""
        body = body.encode() if isinstance(body, str) else body
        body = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        try:
            show(json.loads(body))
        except ValueError:
            pass  # A page for people, or a picture.
