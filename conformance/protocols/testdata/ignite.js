// The thin client of Ignite against the server at an address: keys and values of all types, several at once, complex
// objects, scan and SQL queries with pages, names and configurations of caches.
'use strict';

const assert = require('assert');
const Ignite = require('apache-ignite-client');
const { ObjectType, CacheConfiguration, QueryEntity, QueryField } = Ignite;

class Item {
  constructor(name = null, price = null) {
    this.name = name;
    this.price = price;
  }
}

async function main() {
  const client = new Ignite();
  await client.connect(new Ignite.IgniteClientConfiguration(process.argv[2]));

  assert.deepStrictEqual(await client.cacheNames(), []);
  const cache = await client.getOrCreateCache('plain');
  await client.getOrCreateCache('plain');
  await assert.rejects(client.createCache('plain'), /exists/);
  assert.deepStrictEqual(await client.cacheNames(), ['plain']);

  const code = ObjectType.PRIMITIVE_TYPE;
  for (const [type, value] of [[code.BYTE, -1], [code.SHORT, 7], [code.INTEGER, 1 << 20], [code.LONG, 2 ** 40], [code.FLOAT, 1.5],
    [code.DOUBLE, 0.1], [code.CHAR, 'a'], [code.BOOLEAN, true], [code.STRING, 'text ä😀'], [code.DATE, new Date(1e12)],
    [code.UUID, Array.from({ length: 16 }, (_, i) => i)], [code.BYTE_ARRAY, [1, -1]], [code.LONG_ARRAY, [1, 2 ** 40]],
    [code.STRING_ARRAY, ['a', null]], [code.BOOLEAN_ARRAY, [true, false]], [code.TIMESTAMP, new Ignite.Timestamp(1e12, 5)]]) {
    cache.setKeyType(code.INTEGER).setValueType(type);
    await cache.put(type, value);
    assert.deepStrictEqual(await cache.get(type), value);
  }
  assert.strictEqual(await cache.getSize(), 16);
  await cache.removeAll();

  cache.setKeyType(code.INTEGER).setValueType(code.STRING);
  const entries = Array.from({ length: 1000 }, (_, i) => new Ignite.CacheEntry(i, `v${i}`));
  await cache.putAll(entries);
  assert.strictEqual(await cache.getSize(), 1000);
  assert.strictEqual((await cache.getAll([1, 2, 5000])).length, 2);
  assert.strictEqual(await cache.get(5000), null);
  assert.strictEqual(await cache.containsKey(5), true);
  assert.strictEqual(await cache.containsKeys([5, 5000]), false);
  assert.strictEqual(await cache.getAndPut(5, 'x'), 'v5');
  assert.strictEqual(await cache.getAndReplace(5, 'y'), 'x');
  assert.strictEqual(await cache.getAndRemove(5), 'y');
  assert.strictEqual(await cache.getAndPutIfAbsent(5, 'z'), null);
  assert.strictEqual(await cache.putIfAbsent(5, 'no'), false);
  assert.strictEqual(await cache.replace(5, 'a'), true);
  assert.strictEqual(await cache.replaceIfEquals(5, 'b', 'c'), false);
  assert.strictEqual(await cache.replaceIfEquals(5, 'a', 'c'), true);
  assert.strictEqual(await cache.removeIfEquals(5, 'a'), false);
  assert.strictEqual(await cache.removeIfEquals(5, 'c'), true);
  assert.strictEqual(await cache.removeKey(5), false);
  await cache.removeKeys([1, 2]);
  await cache.clearKey(3);
  await cache.clearKeys([4, 6]);
  assert.strictEqual(await cache.getSize(), 994);

  const scan = await cache.query(new Ignite.ScanQuery().setPageSize(100));
  const keys = new Set();
  do {
    const entry = await scan.getValue();
    assert.strictEqual(entry.getValue(), `v${entry.getKey()}`);
    keys.add(entry.getKey());
  } while (scan.hasMore());
  assert.strictEqual(keys.size, 994);
  const left = await cache.query(new Ignite.ScanQuery().setPageSize(10));
  await left.getValue();
  await left.close();
  await cache.clear();
  assert.strictEqual(await cache.getSize(), 0);

  // Complex objects, whose types are registered.
  const type = new Ignite.ComplexObjectType(new Item('', 0.5), 'Item');
  const items = await client.createCache('items', new CacheConfiguration().setSqlSchema('PUBLIC').setQueryEntities(
    new QueryEntity().setKeyTypeName('java.lang.Integer').setValueTypeName('Item').setFields([
      new QueryField('name', 'java.lang.String'), new QueryField('price', 'java.lang.Double')])));
  items.setKeyType(code.INTEGER).setValueType(type);
  for (let i = 0; i < 50; i++) {
    await items.put(i, new Item(`item ${i}`, i / 2));
  }
  assert.deepStrictEqual(await items.get(7), new Item('item 7', 3.5));
  const rows = await items.query(new Ignite.SqlFieldsQuery('SELECT _KEY, name FROM "items".Item WHERE price >= ? ORDER BY price DESC')
    .setArgTypes(code.DOUBLE).setArgs(10).setPageSize(7).setIncludeFieldNames(true));
  assert.deepStrictEqual(rows.getFieldNames(), ['_KEY', 'NAME']);
  const found = await rows.getAll();
  assert.strictEqual(found.length, 30);
  assert.deepStrictEqual(found[0], [49, 'item 49']);
  await assert.rejects(items.query(new Ignite.SqlFieldsQuery('SELECT size FROM Item')), /SIZE/);

  const configuration = await client.getCacheConfiguration('items');
  assert.strictEqual(configuration.getQueryEntities()[0].getValueTypeName(), 'Item');
  assert.strictEqual(configuration.getCopyOnRead(), true);
  await client.destroyCache('plain');
  await assert.rejects(cache.getSize(), /not exist/);
  client.disconnect();
  console.log('ok');
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
