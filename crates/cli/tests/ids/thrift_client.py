"""A client of the service of 2010 with Apache's library.

Its compiler does not come with it, so what it would generate is written here.
"""

from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TFramedTransport

import client


class NoArguments(TBase):
    __slots__ = ()
    thrift_spec = ()


class GetIdArguments(TBase):
    __slots__ = ("useragent",)
    thrift_spec = (None, (1, TType.STRING, "useragent", "UTF8", None))

    def __init__(self, useragent=None):
        self.useragent = useragent


class I64Result(TBase):
    __slots__ = ("success",)
    thrift_spec = ((0, TType.I64, "success", None, None),)

    def __init__(self, success=None):
        self.success = success


ARGUMENTS = {
    "get_worker_id": NoArguments,
    "get_timestamp": NoArguments,
    "get_id": GetIdArguments,
    "get_datacenter_id": NoArguments,
    "get_weather": NoArguments,
}


def connect(host, port, strict):
    socket = TSocket(host, port)
    socket.setTimeout(30_000)
    transport = TFramedTransport(socket)
    # The compiled protocol for strict headers, the one in Python for the others.
    if strict:
        protocol = TBinaryProtocolAccelerated(transport, fallback=False)
    else:
        protocol = TBinaryProtocol(transport, strictRead=False, strictWrite=False)
    transport.open()

    def call(method, *arguments):
        protocol.writeMessageBegin(method, TMessageType.CALL, 0)
        ARGUMENTS[method](*arguments).write(protocol)
        protocol.writeMessageEnd()
        transport.flush()
        _, message, _ = protocol.readMessageBegin()
        if message == TMessageType.EXCEPTION:
            refused = TApplicationException()
            refused.read(protocol)
            protocol.readMessageEnd()
            raise refused
        result = I64Result()
        result.read(protocol)
        protocol.readMessageEnd()
        if result.success is None:
            raise TApplicationException(TApplicationException.MISSING_RESULT)
        return result.success

    return call


client.main(connect, TApplicationException)
