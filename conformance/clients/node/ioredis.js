// Usage: ioredis.js ADDRESS
'use strict';
const assert = require('node:assert/strict');
const Redis = require('ioredis');
const { address, run, until } = require('./run');

const binary = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

async function check(protocol) {
  const keyPrefix = `ioredis-${process.pid}-${protocol}:`;
  const open = [];
  // Without replyMapping the replies of RESP3 have the shapes of RESP2.
  const connect = (options) => (open.push(new Redis({ ...address, protocol, keyPrefix, ...options })), open.at(-1));
  const redis = connect();
  const unprefixed = connect({ keyPrefix: '' });
  try {
    // The requests of tools when they connect.
    assert.match(await redis.info(), /redis_version:/);
    assert.ok((await redis.command()).length > 200);
    assert.equal(await redis.client('SETNAME', 'smoke'), 'OK');
    assert.equal(await redis.client('GETNAME'), 'smoke');

    // Strings and bytes.
    assert.equal(await redis.set('s', 'v', 'EX', 100, 'NX'), 'OK');
    assert.equal(await redis.set('s', 'w', 'NX'), null);
    assert.equal(await redis.set('s', 'w', 'GET'), 'v');
    assert.equal(await redis.get('missing'), null);
    assert.equal(await redis.incrby('n', '4503599627370496'), 4503599627370496);
    await redis.set(binary, binary);
    assert.deepEqual(await redis.getBuffer(binary), binary);
    await redis.hset('h', { a: 1, b: 'x' });
    assert.deepEqual(await redis.hgetall('h'), { a: '1', b: 'x' });
    await redis.zadd('z', 1.5, 'a', '-inf', 'b');
    assert.deepEqual(await redis.zrange('z', 0, -1, 'WITHSCORES'), ['b', '-inf', 'a', '1.5']);

    // A pipeline, with an error in it.
    const pipeline = redis.pipeline();
    for (let i = 0; i < 5000; i++) {
      pipeline.incr('p');
    }
    const replies = await pipeline.lpush('p', 'x').get('p').exec();
    assert.deepEqual(replies.slice(0, 5000).map(([, n]) => n), Array.from({ length: 5000 }, (_, i) => i + 1));
    assert.match(replies[5000][0].message, /^WRONGTYPE/);
    assert.equal(replies[5001][1], '5000');
    await assert.rejects(redis.lpush('s', 'x'), /^ReplyError: WRONGTYPE Operation against a key/);
    await assert.rejects(redis.call('NOSUCH'), /unknown command 'NOSUCH'/);

    // MULTI and WATCH.
    assert.deepEqual(await redis.multi().set('t', 1).incr('t').lpush('t', 'x').get('t').exec().then((r) => r.map(([e, v]) => (e ? e.message.slice(0, 9) : v))),
      ['OK', 2, 'WRONGTYPE', '2']);
    await redis.watch('t');
    await unprefixed.incr(`${keyPrefix}t`);
    assert.equal(await redis.multi().set('t', 'lost').exec(), null);
    assert.equal(await redis.get('t'), '3');

    // Messages.
    const sub = connect({ keyPrefix: '' });
    const [channel, pattern] = [`${keyPrefix}news`, `${keyPrefix}new?`];
    const got = [];
    sub.on('messageBuffer', (from, m) => got.push(['m', from.toString(), m]));
    sub.on('pmessage', (by, from, m) => got.push(['p', by, from, m]));
    assert.equal(await sub.subscribe(channel), 1);
    assert.equal(await sub.psubscribe(pattern), 2);
    assert.equal(await unprefixed.publish(channel, binary), 2);
    await until('the messages are there', () => got.length === 2);
    assert.deepEqual(got[0], ['m', channel, binary]);
    assert.deepEqual(got[1].slice(0, 3), ['p', pattern, channel]);
    assert.equal(await sub.unsubscribe(channel), 1);

    // Blocking pops: a timeout, and a push by another client.
    assert.equal(await redis.blpop('l', 0.01), null);
    const waiting = connect();
    const popped = waiting.blpop('l', 'l2', 20);
    await redis.rpush('l2', 'x');
    assert.deepEqual(await popped, [`${keyPrefix}l2`, 'x']);

    // Scripts: EVALSHA, and EVAL when the server does not know it.
    redis.defineCommand('add', { numberOfKeys: 1, lua: `-- ${keyPrefix}\nreturn {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[2], false, {ok = 'fine'}}` });
    assert.deepEqual(await redis.add('e', 5, binary), [5, binary.toString(), null, 'fine']);
    assert.deepEqual((await redis.addBuffer('e', 5, binary))[1], binary);
    await assert.rejects(redis.evalsha('f'.repeat(40), 0), /NOSCRIPT/);
    await assert.rejects(redis.eval('return redis.error_reply("MY error")', 0), /MY error/);

    // Streams and groups.
    await redis.xgroup('CREATE', 'x', 'g', '$', 'MKSTREAM');
    const ids = [];
    for (let i = 0; i < 3; i++) {
      ids.push(await redis.xadd('x', 'MAXLEN', '~', 1000, '*', 'i', i));
    }
    const read = await redis.xreadgroup('GROUP', 'g', 'c', 'COUNT', 2, 'BLOCK', 1000, 'STREAMS', 'x', '>');
    assert.deepEqual(read, [[`${keyPrefix}x`, [[ids[0], ['i', '0']], [ids[1], ['i', '1']]]]]);
    assert.equal(await redis.xack('x', 'g', ids[0]), 1);
    assert.deepEqual(await redis.xpending('x', 'g'), [1, ids[1], ids[1], [['c', '1']]]);
    assert.deepEqual((await redis.xautoclaim('x', 'g', 'd', 0, '0'))[1], [[ids[1], ['i', '1']]]);
    assert.deepEqual(await redis.xread('BLOCK', 10, 'STREAMS', 'x', ids[2]), null);

    // SCAN.
    await unprefixed.mset(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${keyPrefix}scan:${i}`, i])));
    const keys = new Set();
    for await (const batch of unprefixed.scanStream({ match: `${keyPrefix}scan:*`, count: 100 })) {
      batch.forEach((k) => keys.add(k));
    }
    assert.equal(keys.size, 1000);
    assert.equal((await redis.client('LIST')).split('\n').filter((line) => line.includes('name=smoke')).length, 1);
  } finally {
    for await (const batch of unprefixed.scanStream({ match: `${keyPrefix}*`, count: 1000 })) {
      batch.length && (await unprefixed.unlink(batch));
    }
    await unprefixed.unlink(Buffer.concat([Buffer.from(keyPrefix), binary]));
    open.forEach((o) => o.disconnect());
  }
}

run(async () => {
  await check(2);
  await check(3);
  return `ioredis ${require('ioredis/package.json').version}: RESP2, RESP3`;
});
