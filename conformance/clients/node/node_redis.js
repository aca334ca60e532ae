// Usage: node_redis.js ADDRESS
'use strict';
const assert = require('node:assert/strict');
const { createClient, createClientPool, defineScript, ErrorReply, WatchError, RESP_TYPES, BasicClientSideCache } = require('redis');
const { address, run, until } = require('./run');

const binary = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

// The groups of Redis 8.
async function types(redis, key) {
  await redis.ts.create(key('ts'), { LABELS: { of: key('ts') }, DUPLICATE_POLICY: 'LAST' });
  await redis.ts.create(key('sum'));
  await redis.ts.createRule(key('ts'), key('sum'), 'SUM', 10);
  assert.equal(await redis.ts.add(key('ts'), 1, 1.5), 1);
  assert.deepEqual(await redis.ts.mAdd([{ key: key('ts'), timestamp: 2, value: 2 }, { key: key('ts'), timestamp: 11, value: 3 }]), [2, 11]);
  assert.equal(await redis.ts.incrBy(key('ts'), 1, { TIMESTAMP: 11 }), 11);
  const plain = (samples) => samples.map(({ timestamp, value }) => [timestamp, value]);
  assert.deepEqual(plain(await redis.ts.range(key('ts'), '-', '+')), [[1, 1.5], [2, 2], [11, 4]]);
  assert.deepEqual(plain(await redis.ts.range(key('sum'), '-', '+')), [[0, 3.5]]);
  assert.deepEqual(plain(await redis.ts.revRange(key('ts'), '-', '+', { AGGREGATION: { type: 'MAX', timeBucket: 10 } })), [[10, 4], [0, 2]]);
  assert.deepEqual(plain([await redis.ts.get(key('ts'))]), [[11, 4]]);
  assert.deepEqual([...(await redis.ts.queryIndex(`of=${key('ts')}`))], [key('ts')]);
  const found = await redis.ts.mRange('-', '+', `of=${key('ts')}`);
  assert.deepEqual(plain(found[key('ts')]), [[1, 1.5], [2, 2], [11, 4]]);
  const info = await redis.ts.info(key('ts'));
  assert.deepEqual([info.totalSamples, info.rules[0].key, info.rules[0].timeBucket], [3, key('sum'), 10]);
  assert.equal(await redis.ts.del(key('ts'), 1, 2), 2);

  assert.equal(await redis.json.set(key('json'), '$', { a: [1, 2], s: 'x', n: 1, o: { n: 2 } }), 'OK');
  assert.deepEqual(await redis.json.get(key('json'), { path: '$..n' }), [1, 2]);
  assert.deepEqual(await redis.json.arrAppend(key('json'), '$.a', 3), [3]);
  assert.deepEqual(await redis.json.arrPop(key('json'), { path: '$.a' }), [3]);
  assert.deepEqual(await redis.json.numIncrBy(key('json'), '$..n', 1.5), [2.5, 3.5]);
  assert.deepEqual(await redis.json.objKeys(key('json'), { path: '$.o' }), [['n']]);
  assert.deepEqual(await redis.json.mGet([key('json')], '$.s'), [['x']]);
  assert.equal(await redis.json.merge(key('json'), '$', { o: null }), 'OK');
  assert.deepEqual(await redis.json.get(key('json'), { path: '$' }), [{ a: [1, 2], s: 'x', n: 2.5 }]);

  await redis.bf.reserve(key('bf'), 0.01, 100);
  assert.equal(await redis.bf.add(key('bf'), 'a'), true);
  assert.deepEqual(await redis.bf.mAdd(key('bf'), ['a', 'b']), [false, true]);
  assert.deepEqual(await redis.bf.mExists(key('bf'), ['b', 'c']), [true, false]);
  assert.equal((await redis.bf.info(key('bf')))['Number of items inserted'], 2);
  await redis.cf.reserve(key('cf'), 100);
  assert.equal(await redis.cf.add(key('cf'), 'a'), true);
  assert.equal(await redis.cf.addNX(key('cf'), 'a'), false);
  assert.equal(await redis.cf.count(key('cf'), 'a'), 1);
  assert.equal(await redis.cf.del(key('cf'), 'a'), true);
  await redis.cms.initByDim(key('cms'), 1000, 5);
  assert.deepEqual(await redis.cms.incrBy(key('cms'), [{ item: 'a', incrementBy: 5 }, { item: 'b', incrementBy: 10 }]), [5, 10]);
  assert.deepEqual(await redis.cms.query(key('cms'), ['a', 'c']), [5, 0]);
  assert.equal((await redis.cms.info(key('cms'))).count, 15);
  await redis.topK.reserve(key('topk'), 2, { width: 50, depth: 4, decay: 0.9 });
  assert.deepEqual(await redis.topK.add(key('topk'), ['a', 'b', 'a']), [null, null, null]);
  assert.deepEqual(await redis.topK.list(key('topk')), ['a', 'b']);
  assert.deepEqual(await redis.topK.query(key('topk'), ['a', 'z']), [true, false]);
  await redis.tDigest.create(key('td'), { COMPRESSION: 500 });
  await redis.tDigest.add(key('td'), [1, 2, 3, 4]);
  assert.deepEqual([await redis.tDigest.min(key('td')), await redis.tDigest.max(key('td'))], [1, 4]);
  assert.deepEqual(await redis.tDigest.quantile(key('td'), [0, 1]), [1, 4]);
  assert.deepEqual(await redis.tDigest.cdf(key('td'), [2.5]), [0.5]);

  await redis.vAdd(key('v'), [1, 0], 'a');
  await redis.vAdd(key('v'), [0, 1], 'b');
  assert.deepEqual(await redis.vSim(key('v'), [1, 0.1]), ['a', 'b']);
  assert.equal(await redis.vCard(key('v')), 2);
}

async function check(RESP) {
  const prefix = `node-redis-${process.pid}-${RESP}:`;
  const key = (k) => prefix + k;
  const add = defineScript({
    SCRIPT: `-- ${prefix}\nreturn {redis.call('INCRBY', KEYS[1], ARGV[1]), false}`,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, k, n) {
      parser.pushKey(k);
      parser.push(n);
    },
    transformReply: undefined,
  });
  const open = [];
  const connect = async (options) => {
    const client = createClient({ socket: address, RESP, scripts: { add }, name: 'smoke', ...options });
    open.push(client);
    client.on('error', (e) => { throw e; });
    await client.connect();
    return client;
  };
  const redis = await connect();
  const other = await connect();
  try {
    // The requests of tools when they connect. The client has sent HELLO and CLIENT SETINFO.
    assert.match(await redis.info(), /redis_version:/);
    assert.ok((await redis.command()).length > 200);
    assert.ok((await redis.commandInfo(['get']))[0].flags.has('readonly'));
    assert.equal(await redis.clientGetName(), 'smoke');
    assert.equal((await redis.hello(RESP)).proto, RESP);
    assert.ok((await redis.clientList()).some((c) => c.name === 'smoke'));
    assert.equal((await redis.configGet('maxmemory')).maxmemory, '0');

    // Strings and bytes.
    const bytes = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    assert.equal(await redis.set(key('s'), 'v', { expiration: { type: 'EX', value: 100 }, condition: 'NX' }), 'OK');
    assert.equal(await redis.set(key('s'), 'w', { condition: 'NX' }), null);
    assert.equal(await redis.set(key('s'), 'w', { GET: true }), 'v');
    assert.equal(await redis.get(key('missing')), null);
    await redis.set(key('b'), binary);
    assert.deepEqual(await bytes.get(key('b')), binary);
    await redis.hSet(key('h'), { a: '1', b: 'x' });
    assert.deepEqual({ ...(await redis.hGetAll(key('h'))) }, { a: '1', b: 'x' });
    await redis.zAdd(key('z'), [{ score: 1.5, value: 'a' }, { score: -Infinity, value: 'b' }]);
    assert.deepEqual(await redis.zRangeWithScores(key('z'), 0, -1), [{ value: 'b', score: -Infinity }, { value: 'a', score: 1.5 }]);
    await redis.sAdd(key('set'), ['a', 'b']);
    assert.deepEqual([...(await redis.sMembers(key('set')))].sort(), ['a', 'b']);

    // Commands sent in one tick form a pipeline.
    const counts = await Promise.all(Array.from({ length: 5000 }, () => redis.incr(key('p'))));
    assert.deepEqual(counts, Array.from({ length: 5000 }, (_, i) => i + 1));
    await assert.rejects(redis.lPush(key('s'), 'x'), (e) => e instanceof ErrorReply && /^WRONGTYPE/.test(e.message));
    await assert.rejects(redis.sendCommand(['NOSUCH']), /unknown command 'NOSUCH'/);

    // MULTI and WATCH.
    assert.deepEqual(await redis.multi().set(key('t'), '1').incr(key('t')).hGetAll(key('h')).exec().then((r) => r.map((v) => (typeof v === 'object' ? { ...v } : v))),
      ['OK', 2, { a: '1', b: 'x' }]);
    await redis.watch(key('t'));
    await other.incr(key('t'));
    await assert.rejects(redis.multi().set(key('t'), 'lost').exec(), WatchError);
    assert.equal(await redis.get(key('t')), '3');

    // Messages.
    const sub = await connect();
    const got = [];
    await sub.subscribe(key('news'), (m, channel) => got.push(['m', channel, m]), true);
    await sub.pSubscribe(key('new?'), (m, channel) => got.push(['p', channel, m]));
    await sub.sSubscribe(key('shard'), (m, channel) => got.push(['s', channel, m]));
    assert.equal(await redis.publish(key('news'), binary), 2);
    assert.equal(await redis.sPublish(key('shard'), 'x'), 1);
    await until('the messages are there', () => got.length === 3);
    assert.deepEqual(got[0], ['m', Buffer.from(key('news')), binary]);
    assert.deepEqual(got[1].slice(0, 2), ['p', key('news')]);
    assert.deepEqual(got[2], ['s', key('shard'), 'x']);
    if (RESP === 3) {
      assert.equal(await sub.get(key('t')), '3'); // commands beside subscriptions
    }
    await sub.unsubscribe();

    // Blocking pops: a timeout, and a push by another client.
    assert.equal(await redis.blPop(key('l'), 0.01), null);
    const popped = other.blPop([key('l'), key('l2')], 20);
    await redis.rPush(key('l2'), 'x');
    assert.deepEqual({ ...(await popped) }, { key: key('l2'), element: 'x' });

    // Scripts: EVALSHA, and EVAL when the server does not know it; functions.
    assert.deepEqual(await redis.add(key('e'), '5'), [5, null]);
    assert.deepEqual(await redis.add(key('e'), '5'), [10, null]);
    await assert.rejects(redis.evalSha('f'.repeat(40)), /NOSCRIPT/);
    const library = `smoke${process.pid}`;
    await redis.functionLoad(`#!lua name=${library}\nredis.register_function('${library}', function(keys, args) return args[1] end)`);
    assert.equal(await redis.fCall(library, { arguments: ['x'] }), 'x');
    assert.equal((await redis.functionList({ LIBRARYNAME: library })).length, 1);
    await redis.functionDelete(library);

    // Streams and groups.
    await redis.xGroupCreate(key('x'), 'g', '$', { MKSTREAM: true });
    const ids = [];
    for (let i = 0; i < 3; i++) {
      ids.push(await redis.xAdd(key('x'), '*', { i: String(i) }));
    }
    const plain = (messages) => messages.map(({ id, message }) => [id, { ...message }]);
    const read = await redis.xReadGroup('g', 'c', { key: key('x'), id: '>' }, { COUNT: 2, BLOCK: 1000 });
    assert.equal(read[0].name, key('x'));
    assert.deepEqual(plain(read[0].messages), [[ids[0], { i: '0' }], [ids[1], { i: '1' }]]);
    assert.equal(await redis.xAck(key('x'), 'g', ids[0]), 1);
    assert.equal((await redis.xPending(key('x'), 'g')).pending, 1);
    assert.deepEqual(plain((await redis.xAutoClaim(key('x'), 'g', 'd', 0, '0')).messages), [[ids[1], { i: '1' }]]);
    assert.equal((await redis.xInfoStream(key('x'))).length, 3);
    assert.equal((await redis.xInfoConsumers(key('x'), 'g')).length, 2);

    if (await redis.ts.queryIndex('of=nothing').then(() => true, () => false)) {
      await types(redis, key);
    }

    // SCAN, and a pool of connections.
    await redis.mSet(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [key(`scan:${i}`), String(i)])));
    const keys = new Set();
    for await (const batch of redis.scanIterator({ MATCH: key('scan:*'), COUNT: 100 })) {
      batch.forEach((k) => keys.add(k));
    }
    assert.equal(keys.size, 1000);
    const pool = createClientPool({ socket: address, RESP }, { minimum: 1, maximum: 5 });
    await pool.connect();
    assert.deepEqual(await Promise.all(Array.from({ length: 50 }, (_, i) => pool.get(key(`scan:${i}`)))), Array.from({ length: 50 }, (_, i) => String(i)));
    await pool.close();

    // A cache in the client; the server notifies it of changes.
    if (RESP === 3) {
      const clientSideCache = new BasicClientSideCache();
      const cached = await connect({ clientSideCache });
      assert.equal(await cached.get(key('s')), 'w');
      assert.equal(await cached.get(key('s')), 'w');
      assert.equal(clientSideCache.stats().hitCount, 1);
      await redis.set(key('s'), 'new');
      await until('the cache is invalidated', async () => (await cached.get(key('s'))) === 'new');
    }
  } finally {
    for await (const batch of redis.scanIterator({ MATCH: `${prefix}*`, COUNT: 1000 })) {
      batch.length && (await redis.unlink(batch));
    }
    open.forEach((o) => o.destroy());
  }
}

run(async () => {
  await check(2);
  await check(3);
  return `node-redis ${require('redis/package.json').version}: RESP2, RESP3`;
});
