"""The key-value store of an application: operations, conditions, and streams of events."""
import enum
import queue
import threading
from collections import OrderedDict, namedtuple
from collections.abc import MutableMapping

import grpc

import skein_pb2 as pb

ValueOwnerPair = namedtuple("ValueOwnerPair", ["value", "owner"])
TransactionResult = namedtuple("TransactionResult", ["succeeded", "results"])
Event = namedtuple("Event", ["key", "result", "event_type", "event_filter"])


class EventType(enum.Enum):
    ALL = 0
    PUT = 1
    DELETE = 2

    def __repr__(self):
        return "EventType." + self.name


class NoChange:
    def __repr__(self):
        return "no_change"


no_change = NoChange()


def instance(id):
    service, _, number = id.rpartition("_")
    return pb.ContainerInstance(service_name=service, instance=int(number))


def owner_of(item):
    return "%s_%d" % (item.owner.service_name, item.owner.instance) if item.HasField("owner") else None


def bounds(key=None, prefix=None, start=None, end=None):
    """The range for one key, for those with a prefix, or from start to before end."""
    if key is not None:
        return key, key + "\0"
    if prefix:
        last = prefix.encode()
        return prefix, (last[:-1] + bytes([last[-1] + 1])).decode()
    return start or "", end or ""


# Operations: their requests, the conversion of answers, and their text.

class Operation:
    def __init__(self, name, args, kind, request, result):
        self.name, self.args, self.kind, self.request, self.result = name, args, kind, request, result

    def __repr__(self):
        return "%s(%s)" % (self.name, self.args)


def _range(name, args, where, result, kind="get_range", results="ITEMS"):
    cls = pb.GetRangeRequest if kind == "get_range" else pb.DeleteRangeRequest
    request = cls(start=where[0], end=where[1], result_type=cls.ResultType.Value(results))
    return Operation(name, args, kind, request, result)


def _value(item, return_owner):
    return ValueOwnerPair(item.value, owner_of(item)) if return_owner else item.value


def _items(return_owner):
    return lambda r: OrderedDict((i.key, _value(i, return_owner)) for i in r.result)


def _one(default, return_owner):
    missing = ValueOwnerPair(default, None) if return_owner else default
    return lambda r: _value(r.result[0], return_owner) if r.result else missing


def count(start=None, end=None, prefix=None):
    return _range("count", "start=%r, end=%r, prefix=%r" % (start, end, prefix), bounds(None, prefix, start, end),
                  lambda r: r.count, results="NONE")


def list_keys(start=None, end=None, prefix=None):
    return _range("list_keys", "start=%r, end=%r, prefix=%r" % (start, end, prefix), bounds(None, prefix, start, end),
                  lambda r: [i.key for i in r.result], results="KEYS")


def get(key, default=None, return_owner=False):
    return _range("get", "%r, default=%r, return_owner=%r" % (key, default, return_owner), bounds(key),
                  _one(default, return_owner))


def get_prefix(prefix, return_owner=False):
    return _range("get_prefix", "%r, return_owner=%r" % (prefix, return_owner), bounds(prefix=prefix), _items(return_owner))


def get_range(start=None, end=None, return_owner=False):
    return _range("get_range", "start=%r, end=%r, return_owner=%r" % (start, end, return_owner), bounds(start=start, end=end),
                  _items(return_owner))


def pop(key, default=None, return_owner=False):
    return _range("pop", "%r, default=%r, return_owner=%r" % (key, default, return_owner), bounds(key),
                  _one(default, return_owner), "delete_range")


def pop_prefix(prefix, return_owner=False):
    return _range("pop_prefix", "%r, return_owner=%r" % (prefix, return_owner), bounds(prefix=prefix), _items(return_owner),
                  "delete_range")


def pop_range(start=None, end=None, return_owner=False):
    return _range("pop_range", "start=%r, end=%r, return_owner=%r" % (start, end, return_owner), bounds(start=start, end=end),
                  _items(return_owner), "delete_range")


def _discarded(return_keys):
    return lambda r: [i.key for i in r.result] if return_keys else r.count


def discard(key):
    return _range("discard", repr(key), bounds(key), lambda r: r.count == 1, "delete_range", "NONE")


def discard_prefix(prefix, return_keys=False):
    return _range("discard_prefix", "%r, return_keys=%r" % (prefix, return_keys), bounds(prefix=prefix),
                  _discarded(return_keys), "delete_range", "KEYS" if return_keys else "NONE")


def discard_range(start=None, end=None, return_keys=False):
    return _range("discard_range", "start=%r, end=%r, return_keys=%r" % (start, end, return_keys),
                  bounds(start=start, end=end), _discarded(return_keys), "delete_range", "KEYS" if return_keys else "NONE")


def _put(name, key, value, owner, previous, result):
    if not isinstance(key, str):
        raise TypeError("key must be a str")
    if value is not no_change and not isinstance(value, bytes):
        raise TypeError("value must be bytes")
    request = pb.PutKeyRequest(key=key, return_previous=previous, ignore_value=value is no_change,
                               ignore_owner=owner is no_change)
    if value is not no_change:
        request.value = value
    if owner is not no_change and owner is not None:
        request.owner.CopyFrom(instance(owner))
    return Operation(name, "%r, value=%r, owner=%r" % (key, value, owner), "put_key", request, result)


def put(key, value=no_change, owner=no_change):
    return _put("put", key, value, owner, False, lambda r: None)


def swap(key, value=no_change, owner=no_change, return_owner=False):
    def result(r):
        if r.HasField("previous"):
            return _value(r.previous, return_owner)
        return ValueOwnerPair(None, None) if return_owner else None
    return _put("swap", key, value, owner, True, result)


# Conditions.

class Condition:
    def __init__(self, text, **fields):
        self.text, self.message = text, pb.Condition(**fields)

    def __repr__(self):
        return self.text


# exists and missing are operations too.

class _Presence(Operation, Condition):
    def __init__(self, name, key):
        there = name == "exists"
        request = pb.GetRangeRequest(start=key, end=key + "\0", result_type=pb.GetRangeRequest.NONE)
        Operation.__init__(self, name, repr(key), "get_range", request, lambda r: (r.count == 1) == there)
        self.message = pb.Condition(key=key, operator=pb.Condition.NOT_EQUAL if there else pb.Condition.EQUAL)

    __repr__ = Operation.__repr__


def exists(key):
    return _Presence("exists", key)


def missing(key):
    return _Presence("missing", key)


class _Side:
    def __init__(self, name, key):
        self.name, self.key = name, key

    def _compare(self, sign, operator, other):
        fields = {"key": self.key, "operator": operator, "field": pb.Condition.Field.Value(self.name.upper())}
        if other is not None:
            fields[self.name] = instance(other) if self.name == "owner" else other
        return Condition("%s(%r) %s %r" % (self.name, self.key, sign, other), **fields)

    def __eq__(self, other):
        return self._compare("==", pb.Condition.EQUAL, other)

    def __ne__(self, other):
        return self._compare("!=", pb.Condition.NOT_EQUAL, other)

    def __lt__(self, other):
        return self._compare("<", pb.Condition.LESS, other)

    def __le__(self, other):
        return self._compare("<=", pb.Condition.LESS_EQUAL, other)

    def __gt__(self, other):
        return self._compare(">", pb.Condition.GREATER, other)

    def __ge__(self, other):
        return self._compare(">=", pb.Condition.GREATER_EQUAL, other)

    __hash__ = None


def value(key):
    return _Side("value", key)


def owner(key):
    return _Side("owner", key)


# Events.

class EventFilter:
    def __init__(self, event_type="ALL", **where):
        self.start, self.end = bounds(**where)
        self.event_type = event_type if isinstance(event_type, EventType) else EventType[event_type]

    def __repr__(self):
        return "EventFilter(start=%r, end=%r, event_type=%r)" % (self.start, self.end, self.event_type)


class EventQueue(queue.Queue):
    """Receives the events of its filters: one for each filter that an event matches."""

    def __init__(self, watcher):
        super().__init__()
        self.watcher, self.filters = watcher, {}

    def subscribe(self, event_type="ALL", **where):
        chosen = EventFilter(event_type, **where)
        self.filters[chosen] = self.watcher.create(self, chosen)
        return chosen

    def unsubscribe(self, chosen):
        self.watcher.cancel(self.filters.pop(chosen))

    def unsubscribe_all(self):
        for chosen in list(self.filters):
            self.unsubscribe(chosen)

    def get(self, block=True, timeout=30):
        got = super().get(block, timeout)
        if isinstance(got, Exception):
            raise got
        return got

    def __iter__(self):
        while True:
            yield self.get()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unsubscribe_all()


class Watcher:
    """All queues of a client have one stream."""

    def __init__(self, stub):
        self.stub, self.requests, self.lock = stub, queue.Queue(), threading.Lock()
        self.creating, self.canceling, self.watches, self.thread = [], {}, {}, None

    def send(self, request):
        if self.thread is None:
            self.thread = threading.Thread(target=self.run, daemon=True)
            self.thread.start()
        self.requests.put(request)

    def create(self, events, chosen):
        done = queue.Queue()
        create = pb.WatchCreateRequest(start=chosen.start, end=chosen.end, event_type=chosen.event_type.value)
        with self.lock:
            self.creating.append((events, chosen, done))
            self.send(pb.WatchRequest(create=create))
        return done.get(timeout=30)

    def cancel(self, id):
        done = queue.Queue()
        with self.lock:
            self.canceling[id] = done
            self.send(pb.WatchRequest(cancel=pb.WatchCancelRequest(watch_id=id)))
        done.get(timeout=30)

    def run(self):
        from . import translated
        try:
            for r in self.stub.Watch(iter(self.requests.get, None)):
                self.received(r)
        except grpc.RpcError as e:
            with self.lock:
                for events, _ in self.watches.values():
                    events.put(translated(e))

    def received(self, r):
        with self.lock:
            if r.type == pb.WatchResponse.CREATE:
                events, chosen, done = self.creating.pop(0)
                self.watches[r.watch_id] = (events, chosen)
                done.put(r.watch_id)
                return
            if r.type == pb.WatchResponse.CANCEL:
                self.watches.pop(r.watch_id, None)
                self.canceling.pop(r.watch_id).put(None)
                return
            events, chosen = self.watches[r.watch_id]
        put = r.type == pb.WatchResponse.PUT
        for item in r.event:
            result = ValueOwnerPair(item.value, owner_of(item)) if put else None
            events.put(Event(item.key, result, EventType.PUT if put else EventType.DELETE, chosen))

    def close(self):
        if self.thread is not None:
            self.requests.put(None)
            self.thread.join(30)


class KeyValueStore(MutableMapping):
    """Every method is one call, which is atomic."""

    def __init__(self, client):
        self.client, self.watcher = client, Watcher(client.stub)

    def apply(self, op):
        method = {"get_range": "GetRange", "put_key": "PutKey", "delete_range": "DeleteRange"}[op.kind]
        return op.result(self.client.call(method, op.request))

    def transaction(self, conditions=(), on_success=(), on_failure=()):
        requests = [[pb.OpRequest(**{op.kind: op.request}) for op in ops] for ops in (on_success, on_failure)]
        r = self.client.call("Transaction", pb.TransactionRequest(
            condition=[c.message for c in conditions], on_success=requests[0], on_failure=requests[1]))
        ops = on_success if r.succeeded else on_failure
        return TransactionResult(r.succeeded, [op.result(getattr(x, op.kind)) for op, x in zip(ops, r.result)])

    def __len__(self):
        return self.count()

    def __iter__(self):
        return iter(self.list_keys())

    def __contains__(self, key):
        return self.exists(key)

    def __getitem__(self, key):
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key, value):
        self.put(key, value)

    def __delitem__(self, key):
        if not self.discard(key):
            raise KeyError(key)

    def update(self, *args, **kwargs):
        self.transaction(on_success=[put(k, v) for k, v in dict(*args, **kwargs).items()])

    def setdefault(self, key, default):
        r = self.transaction(conditions=[exists(key)], on_success=[get(key)], on_failure=[put(key, default)])
        return r.results[0] if r.succeeded else default

    def clear(self):
        self.discard_range()

    def event_queue(self):
        return EventQueue(self.watcher)

    def events(self, event_type="ALL", **where):
        events = self.event_queue()
        events.subscribe(event_type, **where)
        return events

    def wait(self, key, return_owner=False):
        with self.event_queue() as events:
            events.subscribe("PUT", key=key)
            found = self.get(key, return_owner=True)
            if found.value is None:
                found = events.get().result
        return found if return_owner else found.value

    def close(self):
        self.watcher.close()


def _method(operation):
    return lambda self, *args, **kwargs: self.apply(operation(*args, **kwargs))


for _operation in (count, list_keys, exists, missing, get, get_prefix, get_range, pop, pop_prefix, pop_range, discard,
                   discard_prefix, discard_range, put, swap):
    setattr(KeyValueStore, _operation.__name__, _method(_operation))
