// The life of jobs in BullMQ: its promises must hold on the server at ADDRESS. JOBS and WORKERS set the size of the first part.
// Usage: bullmq.js ADDRESS
'use strict';
const assert = require('node:assert/strict');
const { Queue, Worker, QueueEvents, FlowProducer, UnrecoverableError } = require('bullmq');
const Redis = require('ioredis');
const { address, run, until } = require('./run');

const connection = { ...address, maxRetriesPerRequest: null };
const jobs = Number(process.env.JOBS ?? 5000);
const workers = Number(process.env.WORKERS ?? 10);

// within runs a test with a queue of its own, deletes the queue afterwards, and closes everything that the test has opened.
async function within(name, test) {
  const prefix = `bull-${process.pid}`;
  const open = [];
  const with_ = (o) => (o.on('error', (e) => { failure ??= e; }), open.push(o), o);
  let failure;
  const queue = with_(new Queue(name, { connection, prefix }));
  const t = {
    queue,
    worker: (process, options) => with_(new Worker(name, process, { connection, prefix, ...options })),
    events: async () => {
      const e = with_(new QueueEvents(name, { connection, prefix, lastEventId: '0' }));
      await e.waitUntilReady();
      return e;
    },
    flows: () => with_(new FlowProducer({ connection, prefix })),
  };
  try {
    await test(t);
    await Promise.all(open.filter((o) => o !== queue).map((o) => o.close()));
    await queue.obliterate({ force: true });
    assert.ifError(failure);
  } finally {
    await Promise.allSettled(open.map((o) => o.close()));
  }
}

const state = (queue, id, wanted) => until(`job ${id} is ${wanted}`, async () => (await queue.getJobState(id)) === wanted);

const tests = {
  // Every job is done once, and reported once.
  async many({ queue, worker, events }) {
    const done = new Map();
    const reported = new Map();
    const count = (m, k) => m.set(k, (m.get(k) ?? 0) + 1);
    (await events()).on('completed', ({ jobId }) => count(reported, jobId));
    for (let i = 0; i < workers; i++) {
      worker(async (job) => {
        count(done, job.data.n);
        return job.data.n * 2;
      }, { concurrency: 5 });
    }
    for (let i = 0; i < jobs; i += 500) {
      const batch = Array.from({ length: Math.min(500, jobs - i) }, (_, j) => ({ name: 'n', data: { n: i + j } }));
      if (i % 1000 === 0) {
        await queue.addBulk(batch);
      } else {
        await Promise.all(batch.map(({ name, data }) => queue.add(name, data)));
      }
    }
    await until('all jobs are reported', () => reported.size === jobs, 60_000);
    assert.equal(done.size, jobs, 'jobs that were done');
    assert.deepEqual([...done.values()].filter((n) => n !== 1), [], 'jobs done more than once');
    assert.deepEqual([...reported.values()].filter((n) => n !== 1), [], 'jobs reported more than once');
    const counts = await queue.getJobCounts();
    assert.equal(counts.completed, jobs);
    assert.equal(counts.waiting + counts.active + counts.failed + counts.delayed + counts.prioritized, 0);
    const some = await queue.getJobs(['completed'], 0, 99);
    assert.equal(some.length, 100);
    for (const job of some) {
      assert.equal(job.returnvalue, job.data.n * 2);
    }
    assert.equal((await queue.clean(0, 1000, 'completed')).length, Math.min(1000, jobs));
  },

  async delayed({ queue, worker }) {
    const started = new Map();
    const due = new Map();
    for (const delay of [300, 100, 200]) {
      const job = await queue.add('late', {}, { delay });
      due.set(job.id, job.timestamp + delay);
    }
    const far = await queue.add('far', {}, { delay: 3_600_000 });
    const promoted = await queue.add('promoted', {}, { delay: 3_600_000 });
    worker(async (job) => { started.set(job.id, Date.now()); });
    await promoted.promote();
    await state(queue, promoted.id, 'completed');
    await until('the jobs are done', () => started.size === 4);
    for (const [id, at] of due) {
      assert.ok(started.get(id) >= at, `job ${id} started ${at - started.get(id)} ms early`);
    }
    assert.deepEqual([...started.keys()].filter((id) => due.has(id)), ['2', '3', '1']);
    assert.equal(await far.getState(), 'delayed');
    await far.changeDelay(10);
    await state(queue, far.id, 'completed');
  },

  async priority({ queue, worker }) {
    const order = [];
    await queue.pause();
    for (const priority of [3, 1, 2, 3, 1, 0, 2]) {
      await queue.add('p', { priority }, { priority });
    }
    const last = await queue.add('p', { priority: 9 }, { priority: 1 });
    await last.changePriority({ priority: 9 });
    await queue.add('p', { priority: -1 }, { lifo: true });
    worker(async (job) => { order.push(job.data.priority); });
    await queue.resume();
    await until('all are done', () => order.length === 9);
    assert.deepEqual(order, [-1, 0, 1, 1, 2, 2, 3, 3, 9]);
  },

  async schedulers({ queue, worker }) {
    const runs = { often: [], cron: [] };
    worker(async (job) => { runs[job.name].push(job.opts.repeat.count ?? job.id); }, { concurrency: 4 });
    await queue.upsertJobScheduler('often', { every: 100 }, { name: 'often', data: { n: 1 } });
    await queue.upsertJobScheduler('cron', { pattern: '* * * * * *', limit: 2 }, { name: 'cron' });
    await queue.upsertJobScheduler('never', { pattern: '0 0 1 1 *' }, { name: 'never' });
    assert.equal((await queue.getJobSchedulers()).length, 3);
    await until('five runs', () => runs.often.length >= 5);
    await until('two runs by cron', () => runs.cron.length === 2);
    assert.equal(new Set(runs.often).size, runs.often.length, 'a run twice');
    assert.equal(await queue.removeJobScheduler('often'), true);
    assert.equal(await queue.removeJobScheduler('often'), false);
    assert.equal(await queue.removeJobScheduler('never'), true);
    assert.deepEqual(await queue.getDelayed(), []);
  },

  // A worker takes a job and disappears.
  async stalled({ queue, worker, events }) {
    const stalled = [];
    (await events()).on('stalled', ({ jobId }) => stalled.push(jobId));
    const lost = worker(null, { lockDuration: 300, autorun: false });
    const { id } = await queue.add('s', { n: 7 }, {});
    const job = await lost.getNextJob('token');
    assert.equal(job.id, id);
    assert.equal(await job.getState(), 'active');
    let times = 0;
    worker(async () => ++times, { stalledInterval: 200, lockDuration: 1000 });
    await state(queue, id, 'completed');
    assert.equal(times, 1);
    await until('the job is reported', () => stalled.length > 0);
    assert.deepEqual(stalled, [id]);
    await assert.rejects(job.moveToCompleted('late', 'token', false));
    assert.equal((await queue.getJob(id)).returnvalue, 1);
  },

  async flows({ queue, worker, flows }) {
    const order = [];
    worker(async (job) => {
      order.push(job.name);
      if (job.name === 'bad') {
        throw new UnrecoverableError('no');
      }
      const values = Object.values(await job.getChildrenValues());
      return values.reduce((a, b) => a + b, 0) + job.data.n;
    }, { concurrency: 3 });
    const queueName = queue.name;
    const leaf = (n) => ({ name: 'leaf', queueName, data: { n } });
    const node = (n) => ({ name: 'node', queueName, data: { n }, children: [leaf(1), leaf(2), leaf(3)] });
    const flow = flows();
    const tree = await flow.add({ name: 'root', queueName, data: { n: 1000 }, children: [node(10), node(20), leaf(4)] });
    await state(queue, tree.job.id, 'completed');
    assert.equal((await queue.getJob(tree.job.id)).returnvalue, 1000 + 10 + 20 + 4 + 2 * (1 + 2 + 3));
    assert.equal(order.length, 10);
    assert.equal(order.at(-1), 'root');
    const read = await flow.getFlow({ id: tree.job.id, queueName });
    assert.equal(read.children.length, 3);
    const bad = { name: 'bad', queueName, data: {}, opts: { failParentOnFailure: true } };
    const failing = await flow.add({ name: 'root', queueName, data: { n: 1 }, children: [bad, leaf(1)] });
    await state(queue, failing.job.id, 'failed');
    const ignored = { ...bad, opts: { ignoreDependencyOnFailure: true } };
    const passing = await flow.add({ name: 'root', queueName, data: { n: 1 }, children: [ignored, leaf(5)] });
    await state(queue, passing.job.id, 'completed');
    assert.equal((await queue.getJob(passing.job.id)).returnvalue, 6);
  },

  async retries({ queue, worker, events }) {
    const attempts = new Map();
    const seen = [];
    const e = await events();
    e.on('failed', ({ jobId, failedReason }) => seen.push([jobId, failedReason]));
    worker(async (job) => {
      const list = attempts.get(job.id) ?? [];
      attempts.set(job.id, [...list, Date.now()]);
      if (list.length < job.data.failures) {
        throw new Error(`attempt ${list.length + 1}`);
      }
      return list.length;
    }, { concurrency: 3 });
    const backoff = (type) => ({ attempts: 3, backoff: { type, delay: 100 } });
    const exponential = await queue.add('r', { failures: 2 }, backoff('exponential'));
    const fixed = await queue.add('r', { failures: 2 }, backoff('fixed'));
    const hopeless = await queue.add('r', { failures: 3 }, { attempts: 3 });
    await Promise.all([state(queue, exponential.id, 'completed'), state(queue, fixed.id, 'completed'), state(queue, hopeless.id, 'failed')]);
    const [a, b, c] = attempts.get(exponential.id);
    assert.ok(b - a >= 100 && c - b >= 200, `exponential backoff waited ${b - a} and ${c - b} ms`);
    await until('the failure is reported', () => seen.length > 0);
    assert.deepEqual(seen, [[hopeless.id, 'attempt 3']]);
    assert.equal((await queue.getFailed())[0].stacktrace.length, 3);
    await queue.retryJobs({ state: 'failed' });
    await state(queue, hopeless.id, 'completed');
  },

  async ratelimit({ queue, worker }) {
    const starts = [];
    const max = 10;
    const duration = 300;
    await queue.addBulk(Array.from({ length: 40 }, () => ({ name: 'l', data: {} })));
    worker(async () => { starts.push(Date.now()); }, { limiter: { max, duration }, concurrency: 4 });
    await until('all are done', () => starts.length === 40);
    // The window begins when the first job is fetched, somewhat before it starts.
    const elapsed = starts[39] - starts[0];
    assert.ok(elapsed >= 3 * duration - 100, `40 jobs took ${elapsed} ms`);
    await queue.removeRateLimitKey();
  },

  async misc({ queue, worker, events }) {
    const log = [];
    const e = await events();
    e.on('progress', ({ data }) => log.push(data));
    e.on('deduplicated', ({ deduplicationId }) => log.push(deduplicationId));
    await queue.add('d', { n: 1 }, { deduplication: { id: 'same', ttl: 60_000 } });
    await queue.add('d', { n: 2 }, { deduplication: { id: 'same', ttl: 60_000 } });
    await queue.add('own', { n: 3 }, { jobId: 'own-id' });
    await queue.add('own', { n: 4 }, { jobId: 'own-id' });
    const gone = await queue.add('gone', {});
    await gone.remove();
    assert.equal(await queue.getJobCountByTypes('waiting'), 2);
    await queue.setGlobalConcurrency(1);
    let active = 0;
    worker(async (job) => {
      assert.equal(++active, 1, 'two jobs at once');
      await job.updateProgress(50);
      await job.log('half');
      await job.updateData({ ...job.data, half: true });
      active--;
      return 'ünïcode \u0000 \u{1f600}';
    }, { concurrency: 3, metrics: { maxDataPoints: 10 }, removeOnComplete: { count: 5 } });
    const own = await queue.getJob('own-id');
    assert.equal(await own.waitUntilFinished(e, 10_000), 'ünïcode \u0000 \u{1f600}');
    assert.deepEqual((await queue.getJobLogs('own-id')).logs, ['half']);
    assert.deepEqual((await queue.getJob('own-id')).data, { n: 3, half: true });
    await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: 'x', data: { n } })));
    await until('all are done', async () => (await queue.count()) === 0 && (await queue.getActiveCount()) === 0);
    assert.equal(await queue.getCompletedCount(), 5);
    assert.ok((await queue.getMetrics('completed')).meta.count >= 22);
    assert.equal((await queue.getWorkers()).length, 1);
    await until('events came', () => log.length >= 23);
    assert.equal(log.filter((x) => x === 'same').length, 1);
    await queue.drain(true);
    assert.equal(await queue.removeDeduplicationKey('same'), 1);
  },
};

async function main() {
  for (const [name, test] of Object.entries(tests)) {
    const begin = Date.now();
    try {
      await within(name, test);
    } catch (e) {
      e.message = `${name}: ${e.message}`;
      throw e;
    }
    if (process.env.VERBOSE) {
      console.log(`  ${name} ${Date.now() - begin} ms`);
    }
  }
  const redis = new Redis(address);
  assert.deepEqual(await redis.keys(`bull-${process.pid}:*`), [], 'keys that are left');
  redis.disconnect();
  return `bullmq ${require('bullmq/package.json').version}`;
}

run(main);
