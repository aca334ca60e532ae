"""Usage: smoke.py ADDRESS"""
import os
import sys
import threading

import redis

host, port = sys.argv[1].rsplit(":", 1)
BINARY = bytes(range(256))


def raises(text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except redis.RedisError as e:
        assert text in f"{type(e).__name__} {e}", e
    else:
        raise AssertionError(f"no error with {text}")


def has_types(r):
    try:
        return r.execute_command("TS.QUERYINDEX", "of=nothing") == []
    except redis.ResponseError:
        return False


def types(r, key):
    """The groups of Redis 8."""
    ts = r.ts()
    assert ts.create(key("ts"), retention_msecs=100000, labels={"of": key("ts")}, duplicate_policy="last")
    ts.create(key("sum"))
    ts.createrule(key("ts"), key("sum"), "sum", 10)
    assert ts.add(key("ts"), 1, 1.5) == 1 and ts.madd([(key("ts"), 2, 2), (key("ts"), 11, 3)]) == [2, 11]
    assert ts.incrby(key("ts"), 1, timestamp=11) == 11 and ts.get(key("ts")) == (11, 4.0)
    assert ts.range(key("ts"), "-", "+") == [(1, 1.5), (2, 2.0), (11, 4.0)]
    assert ts.revrange(key("ts"), "-", "+", aggregation_type="max", bucket_size_msec=10) == [(10, 4.0), (0, 2.0)]
    assert ts.range(key("sum"), "-", "+") == [(0, 3.5)]
    assert ts.mrange("-", "+", filters=[f"of={key('ts')}"], with_labels=True) == [
        {key("ts"): [{"of": key("ts")}, [(1, 1.5), (2, 2.0), (11, 4.0)]]}]
    assert ts.mget([f"of={key('ts')}"]) == [{key("ts"): [{}, 11, 4.0]}]
    assert ts.queryindex([f"of={key('ts')}"]) == [key("ts")]
    info = ts.info(key("ts"))
    assert info.total_samples == 3 and info.retention_msecs == 100000 and info.rules == [[key("sum"), 10, "SUM", 0]]
    assert ts.delete(key("ts"), 1, 2) == 2 and ts.deleterule(key("ts"), key("sum"))

    json = r.json()
    assert json.set(key("json"), "$", {"a": [1, 2], "s": "x", "n": 1, "o": {"n": 2}})
    assert json.get(key("json"), "$..n") == [1, 2] and json.get(key("json")) == {"a": [1, 2], "s": "x", "n": 1, "o": {"n": 2}}
    assert json.arrappend(key("json"), "$.a", 3) == [3] and json.arrpop(key("json"), "$.a") in ([3], ["3"])
    assert json.numincrby(key("json"), "$..n", 1.5) == [2.5, 3.5] and json.strlen(key("json"), "$.s") == [1]
    assert json.objkeys(key("json"), "$.o") == [["n"]] and json.type(key("json"), "$.a") == ["array"]
    assert json.mget([key("json")], "$.s") == [["x"]] and json.delete(key("json"), "$.o") == 1

    assert r.bf().create(key("bf"), 0.01, 100) and r.bf().add(key("bf"), "a") == 1
    assert r.bf().madd(key("bf"), "a", "b") == [0, 1] and r.bf().mexists(key("bf"), "b", "c") == [1, 0]
    assert r.bf().info(key("bf")).insertedNum == 2
    assert r.cf().create(key("cf"), 100) and r.cf().add(key("cf"), "a") == 1 and r.cf().addnx(key("cf"), "a") == 0
    assert r.cf().insert(key("cf"), ["b", "b"]) == [1, 1] and r.cf().count(key("cf"), "b") == 2
    assert r.cf().delete(key("cf"), "a") == 1 and r.cf().exists(key("cf"), "a") == 0
    assert r.cf().info(key("cf")).insertedNum == 2
    iterator, data = raw_scandump(r, key)
    assert iterator == 1 and data
    assert r.cms().initbydim(key("cms"), 1000, 5) and r.cms().incrby(key("cms"), ["a", "b"], [5, 10]) == [5, 10]
    assert r.cms().initbydim(key("cms2"), 1000, 5) and r.cms().merge(key("cms2"), 1, [key("cms")], [2])
    assert r.cms().query(key("cms2"), "a", "c") == [10, 0] and r.cms().info(key("cms")).count == 15
    assert r.topk().reserve(key("topk"), 2, 50, 4, 0.9) and r.topk().add(key("topk"), "a", "b", "a") == [None, None, None]
    assert r.topk().incrby(key("topk"), ["c"], [7]) == ["b"] and r.topk().query(key("topk"), "a", "b") == [1, 0]
    assert r.topk().list(key("topk"), withcount=True) == ["c", 7, "a", 2] and r.topk().info(key("topk")).k == 2
    # Debian's release has the methods for digests from before version 2.4 of the module; few of them still work.
    r.execute_command("TDIGEST.CREATE", key("td"), "COMPRESSION", 500)
    r.execute_command("TDIGEST.ADD", key("td"), 1, 2, 3, 4)
    assert r.tdigest().min(key("td")) == 1 and r.tdigest().max(key("td")) == 4
    assert r.tdigest().info(key("td")).compression == 500


def raw_scandump(r, key):
    """A dump is bytes, which a client that decodes text cannot read."""
    raw = redis.Redis(host, int(port))
    try:
        return raw.execute_command("CF.SCANDUMP", key("cf"), 0)
    finally:
        raw.close()


def check(**options):
    prefix = f"redis-py-{os.getpid()}:"
    r = redis.Redis(host, int(port), client_name="smoke", socket_timeout=30, **options)
    raw = redis.Redis(host, int(port))
    key = prefix.__add__
    try:
        # The requests of tools when they connect. The client turns the fields of INFO into numbers.
        info = r.info()
        assert info["redis_version"] and isinstance(info["used_memory"], int)
        assert "cmdstat_info" in r.info("commandstats") and r.info("keyspace") is not None
        assert r.command()["get"]["arity"] == 2 and r.command_count() > 200
        assert r.client_getname() == "smoke" and any(c["name"] == "smoke" for c in r.client_list())
        assert r.config_get("maxmemory")["maxmemory"] == "0" and r.acl_whoami() == "default"
        assert isinstance(r.slowlog_get(), list) and r.time()[0] > 0 and r.dbsize() >= 0

        # Strings and bytes.
        assert r.set(key("s"), "v", ex=100, nx=True) is True
        assert r.set(key("s"), "w", nx=True) is None
        assert r.set(key("s"), "w", get=True) == "v" and r.get(key("missing")) is None
        assert 99 < r.expire(key("s"), 100) + r.ttl(key("s")) <= 101
        raw.set(prefix.encode() + BINARY, BINARY)
        assert raw.get(prefix.encode() + BINARY) == BINARY
        assert r.hset(key("h"), mapping={"a": 1, "b": "x"}) == 2 and r.hgetall(key("h")) == {"a": "1", "b": "x"}
        r.zadd(key("z"), {"a": 1.5, "b": float("-inf")})
        assert r.zrange(key("z"), 0, -1, withscores=True) == [("b", float("-inf")), ("a", 1.5)]
        assert r.sadd(key("set"), "a", "b") == 2 and r.smembers(key("set")) == {"a", "b"}
        r.geoadd(key("geo"), (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
        assert r.geodist(key("geo"), "Palermo", "Catania", "km") == 166.2742
        assert r.bitfield(key("bits")).set("u8", 0, 255).get("i8", 0).execute() == [0, -1]
        assert r.pfadd(key("hll"), "a", "b") == 1 and r.pfcount(key("hll")) == 2
        assert r.object("encoding", key("h")) == "listpack" and r.memory_usage(key("h")) > 0
        assert r.restore(key("copy"), 0, raw.dump(key("h"))) and r.hgetall(key("copy")) == {"a": "1", "b": "x"}

        # A pipeline, with an error in it.
        pipe = r.pipeline(transaction=False)
        for _ in range(5000):
            pipe.incr(key("p"))
        replies = pipe.lpush(key("p"), "x").get(key("p")).execute(raise_on_error=False)
        assert replies[:5000] == list(range(1, 5001)) and replies[5001] == "5000"
        assert isinstance(replies[5000], redis.ResponseError) and str(replies[5000]).startswith("WRONGTYPE")
        raises("WRONGTYPE Operation against a key", r.lpush, key("s"), "x")
        raises("unknown command 'NOSUCH'", r.execute_command, "NOSUCH")

        # MULTI and WATCH.
        assert r.pipeline().set(key("t"), 1).incr(key("t")).get(key("t")).execute() == [True, 2, "2"]
        with r.pipeline() as tx:
            tx.watch(key("t"))
            raw.incr(key("t"))
            tx.multi()
            raises("WatchError", tx.set(key("t"), "lost").execute)
        assert r.get(key("t")) == "3"
        assert r.transaction(lambda tx: (tx.multi(), tx.incr(key("t"))), key("t")) == [4]

        # Messages.
        with r.pubsub() as sub:
            sub.subscribe(key("news"))
            sub.psubscribe(key("new?"))
            got = [sub.get_message(timeout=30) for _ in range(2)]
            assert [(m["type"], m["data"]) for m in got] == [("subscribe", 1), ("psubscribe", 2)]
            assert r.publish(key("news"), "hello") == 2
            got = [sub.get_message(timeout=30) for _ in range(2)]
            assert [(m["type"], m["channel"], m["data"]) for m in got] == [(t, key("news"), "hello") for t in ("message", "pmessage")]
            sub.ping()
            assert sub.get_message(timeout=30)["type"] == "pong"

        # Blocking pops: a timeout, and a push by another client.
        assert r.blpop(key("l"), 0.01) is None
        push = threading.Thread(target=raw.rpush, args=(key("l2"), "x"))
        push.start()
        assert r.blpop([key("l"), key("l2")], 20) == (key("l2"), "x")
        push.join()
        with r.lock(key("lock"), timeout=20) as lock:
            assert not r.lock(key("lock")).acquire(blocking=False)
            assert lock.reacquire() and lock.extend(5)

        # Scripts: EVALSHA, and SCRIPT LOAD when the server does not know it.
        add = r.register_script(f"-- {prefix}\nreturn {{redis.call('INCRBY', KEYS[1], ARGV[1]), false, {{ok = 'fine'}}}}")
        assert add([key("e")], [5]) == [5, None, "fine"] and add([key("e")], [5])[0] == 10
        assert r.script_exists(add.sha) == [True]
        raises("NoScriptError", r.evalsha, "f" * 40, 0)
        raises("MY error", r.eval, "return redis.error_reply('MY error')", 0)

        # Streams and groups.
        r.xgroup_create(key("x"), "g", mkstream=True)
        ids = [r.xadd(key("x"), {"i": i}, maxlen=1000) for i in range(3)]
        read = r.xreadgroup("g", "c", {key("x"): ">"}, count=2, block=1000)
        assert read == [[key("x"), [(ids[0], {"i": "0"}), (ids[1], {"i": "1"})]]]
        assert r.xack(key("x"), "g", ids[0]) == 1 and r.xpending(key("x"), "g")["pending"] == 1
        assert r.xpending_range(key("x"), "g", "-", "+", 10)[0]["message_id"] == ids[1]
        assert r.xautoclaim(key("x"), "g", "d", 0)[1] == [(ids[1], {"i": "1"})]
        assert r.xread({key("x"): ids[2]}, block=10) == []
        assert r.xinfo_stream(key("x"))["length"] == 3 and len(r.xinfo_consumers(key("x"), "g")) == 2

        if has_types(r):
            types(r, key)

        # SCAN.
        r.mset({key(f"scan:{i}"): i for i in range(1000)})
        assert len(set(r.scan_iter(key("scan:*"), count=100))) == 1000
        assert set(r.scan_iter(key("*"), _type="zset")) == {key("z"), key("geo")}
    finally:
        for k in raw.scan_iter(prefix + "*", count=1000):
            raw.unlink(k)
        raw.close()
        r.close()


check(decode_responses=True)
print(f"redis-py {redis.__version__}: RESP2")
