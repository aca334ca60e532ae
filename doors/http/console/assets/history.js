// The samples since the page was opened: points of the overview, each derived from two samples.
import { fields, isError, list, pairs, plain } from "./lib.js";

const most = 900;
const names = ["ops", "p50", "p99", "p999", "used", "rss", "peak", "hits", "misses", "rate", "in", "out", "clients", "blocked", "journal",
  "unsynced", "debt", "expired", "evicted", "left", "came"];

export const history = { at: [], info: null, commands: [], all: { p50: null, p99: null },
  points: Object.fromEntries(names.map((n) => [n, []])) };

// parse returns the fields of INFO.
export function parse(text) {
  const out = Object.create(null);
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0 && line[0] !== "#") out[line.slice(0, colon)] = line.slice(colon + 1);
  }
  return out;
}

// histograms returns the calls and the buckets of each command. A bucket is an upper limit in µs and a cumulative
// count.
function histograms(reply) {
  const out = new Map();
  for (const [name, of] of pairs(reply)) {
    const f = fields(of);
    out.set(name, { calls: f.calls, buckets: pairs(f.histogram_usec).map(([us, n]) => [Number(us), plain(n)]) });
  }
  return out;
}

// between returns the calls of each bucket between two histograms.
function between(old, now, into) {
  let before = 0, last = 0;
  const earlier = old ? old.buckets : [];
  let i = 0;
  for (const [us, n] of now.buckets) {
    while (i < earlier.length && earlier[i][0] <= us) before = earlier[i++][1];
    const fresh = Math.max(n - before, 0);
    if (fresh > last) into.set(us, (into.get(us) || 0) + fresh - last);
    last = Math.max(last, fresh);
  }
  return into;
}

// percentile returns the upper limit below which a part of the calls lie.
function percentile(buckets, part) {
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]);
  const total = sorted.reduce((sum, [, n]) => sum + n, 0);
  let n = 0;
  for (const [us, k] of sorted) if ((n += k) >= total * part) return us;
  return null;
}

let last = null;

// add takes a sample of the topic overview.
export function add(sample) {
  if (isError(sample.info)) return; // the user lacks the permission
  const now = { at: sample.at / 1000, info: parse(plain(sample.info)), latency: histograms(sample.latency) };
  history.info = now.info;
  if (last && now.info.run_id === last.info.run_id && now.at <= last.at) return; // a new stream begins with the last sample
  if (last && now.info.run_id === last.info.run_id && now.at > last.at && now.at - last.at < 30) derive(last, now);
  else if (history.at.length) gap(now.at);
  last = now;
}

function gap(at) {
  history.at.push(at);
  for (const n of names) history.points[n].push(null);
}

function derive(old, now) {
  const i = now.info, seconds = now.at - old.at;
  const number = (name) => Number(i[name]);
  const rate = (name) => Math.max(number(name) - Number(old.info[name]), 0) / seconds;
  const all = new Map();
  const commands = [];
  for (const [name, h] of now.latency) {
    const buckets = between(old.latency.get(name), h, new Map());
    const calls = Math.max(h.calls - (old.latency.get(name)?.calls || 0), 0);
    for (const [us, n] of buckets) all.set(us, (all.get(us) || 0) + n);
    commands.push({ name, total: h.calls, rate: calls / seconds, p50: percentile(buckets, 0.5), p99: percentile(buckets, 0.99),
      max: h.buckets.at(-1)?.[0] });
  }
  history.commands = commands.sort((a, b) => b.rate - a.rate || b.total - a.total);
  const hits = rate("keyspace_hits"), misses = rate("keyspace_misses");
  const p = {
    ops: rate("total_commands_processed"), p50: percentile(all, 0.5), p99: percentile(all, 0.99), p999: percentile(all, 0.999),
    used: number("used_memory"), rss: number("used_memory_rss"), peak: number("used_memory_peak"),
    hits, misses, rate: hits + misses ? (100 * hits) / (hits + misses) : null,
    in: rate("total_net_input_bytes"), out: rate("total_net_output_bytes"),
    clients: number("connected_clients"), blocked: number("blocked_clients"),
    journal: number("journal_since_checkpoint"), unsynced: number("journal_unsynced"), debt: number("store_compaction_debt"),
    expired: rate("expired_keys"), evicted: rate("evicted_keys"),
    left: rate("tier_unloaded_values"), came: rate("tier_loaded_values"),
  };
  history.at.push(now.at);
  for (const n of names) history.points[n].push(Number.isFinite(p[n]) ? p[n] : null);
  if (history.at.length > most) {
    history.at.shift();
    for (const n of names) history.points[n].shift();
  }
  history.now = p;
}

// series returns data for a plot.
export const series = (...of) => [history.at, ...of.map((n) => history.points[n])];

// keep and restore preserve the points during a reload of the page.
export const keep = () => sessionStorage.setItem("history", JSON.stringify({ at: history.at, points: history.points }));

export function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem("history"));
    if (!kept || Date.now() / 1000 - kept.at.at(-1) > 300 || !names.every((n) => list(kept.points[n]).length === kept.at.length)) return;
    Object.assign(history, { at: kept.at, points: kept.points });
  } catch { /* what another version has kept is of no use */ }
}
