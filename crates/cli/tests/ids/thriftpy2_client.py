"""A client of the service of 2010 with thriftpy2."""

import pathlib

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TCyBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TCyFramedTransportFactory, TFramedTransportFactory

import client

INTERFACE = thriftpy2.load(
    str(pathlib.Path(__file__).with_name("snowflake.thrift")),
    module_name="snowflake_thrift",
)


def connect(host, port, strict):
    # The compiled protocol for strict headers, the one in Python for the others.
    if strict:
        protocol, transport = TCyBinaryProtocolFactory(), TCyFramedTransportFactory()
    else:
        protocol = TBinaryProtocolFactory(strict_read=False, strict_write=False)
        transport = TFramedTransportFactory()
    service = make_client(
        INTERFACE.Later,
        host,
        port,
        proto_factory=protocol,
        trans_factory=transport,
        timeout=30_000,
    )
    methods = {name: getattr(service, name) for name in INTERFACE.Later.thrift_services}
    return lambda method, *arguments: methods[method](*arguments)


client.main(connect, TApplicationException)
