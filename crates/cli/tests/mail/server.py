"""An SMTP server that says on standard output, a line of JSON each, what it is sent."""

import argparse
import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


def say(**what):
    print(json.dumps(what), flush=True)


class Handler:
    """Takes mail; `busy…` only at the second try, and `refused…` never."""

    def __init__(self):
        self.tried = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        say(asked=address)
        if address.startswith("refused"):
            return "550 there is no such person as " + address
        if address.startswith("busy") and address not in self.tried:
            self.tried.add(address)
            return "451 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        say(
            to=envelope.rcpt_tos,
            sender=envelope.mail_from,
            tls=session.ssl is not None or arguments.tls == "implicit",
            user=session.auth_data and session.auth_data.login.decode(),
            subject=mail["subject"],
            text=mail.get_content(),
        )
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    say(login=session.ssl is not None or arguments.tls == "implicit")
    known = isinstance(data, LoginPassword) and data.login == b"ann"
    known = known and data.password.decode() == arguments.passphrase
    return AuthResult(success=known, handled=False, auth_data=data)


async def main():
    context = None
    if arguments.tls != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.certificate, arguments.key)
    starts = arguments.tls == "starttls"
    handler = Handler()

    def session():
        return SMTP(
            handler,
            hostname="localhost",
            tls_context=context if starts else None,
            require_starttls=starts,
            authenticator=authenticate,
            auth_required=arguments.passphrase is not None,
            auth_require_tls=starts,
            timeout=20,
        )

    server = await asyncio.get_running_loop().create_server(
        session,
        "127.0.0.1",
        arguments.port,
        ssl=context if arguments.tls == "implicit" else None,
    )
    say(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--tls", choices=["none", "starttls", "implicit"], default="none")
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--passphrase")
arguments = parser.parse_args()
try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(0)
