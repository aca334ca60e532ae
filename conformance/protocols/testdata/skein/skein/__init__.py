"""A small client of an application master, which maps Python's operations to calls. It replaces Skein's own client in
tests: the interface is the same, the code is not."""
import grpc

import skein_pb2 as pb
import skein_pb2_grpc as services

from . import kv

ERRORS = {
    grpc.StatusCode.UNAVAILABLE: ConnectionError,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimeoutError,
    grpc.StatusCode.NOT_FOUND: KeyError,
    grpc.StatusCode.INVALID_ARGUMENT: ValueError,
    grpc.StatusCode.FAILED_PRECONDITION: ValueError,
    grpc.StatusCode.ALREADY_EXISTS: ValueError,
}


class ApplicationError(Exception):
    pass


def translated(error):
    return ERRORS.get(error.code(), ApplicationError)(error.details())


class Container:
    def __init__(self, message):
        self.service_name, self.instance = message.service_name, message.instance
        self.state = pb.Container.State.Name(message.state)
        self.id = "%s_%d" % (self.service_name, self.instance)

    def __repr__(self):
        return "Container<service_name=%r, instance=%d, state=%s>" % (self.service_name, self.instance, self.state)


class ApplicationClient:
    """An application at an address. Its certificate and key are files."""

    def __init__(self, address, cert, key):
        cert, key = open(cert, "rb").read(), open(key, "rb").read()
        self.channel = grpc.secure_channel(
            address,
            grpc.ssl_channel_credentials(root_certificates=cert, private_key=key, certificate_chain=cert),
            options=[("grpc.ssl_target_name_override", "skein-internal"), ("grpc.default_authority", "skein-internal")])
        self.stub = services.AppMasterStub(self.channel)
        self.kv = kv.KeyValueStore(self)

    def call(self, method, request):
        try:
            return getattr(self.stub, method)(request, timeout=30)
        except grpc.RpcError as e:
            raise translated(e) from None

    def get_containers(self, states=(), services=()):
        states = [pb.Container.State.Value(s) for s in states]
        return [Container(c) for c in self.call("getContainers", pb.ContainersRequest(states=states, services=services)).containers]

    def scale(self, service, count=None, delta=None):
        request = pb.ScaleRequest(service_name=service, count=count or 0, delta=delta or 0)
        return [Container(c) for c in self.call("scale", request).containers]

    def kill_container(self, id):
        self.call("killContainer", kv.instance(id))

    def shutdown(self, status="SUCCEEDED"):
        self.call("shutdown", pb.ShutdownRequest(final_status=pb.FinalStatus.Type.Value(status)))

    def close(self):
        self.kv.close()
        self.channel.close()
