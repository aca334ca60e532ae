// The coordination systems: pressure queues, atom elements, spiderq queues, Skein applications, Perper executions.
import { h, show, unshow, many, whole, count, size, duration, clock, run, call, may, plain, list, pairs, fields, isError, problem, facts,
  nest, table, swap, form, sure } from "./lib.js";
import { plot } from "./plot.js";

// listing is a view of the objects of a system: a table of their samples, and the details of the chosen one. columns
// get an item; detail(box, name, item) fills a box and returns update(item, history) and end. kept is the number of
// samples that are kept of each.
export function listing(title, topic, columns, noun, detail, more = [], view = topic, kept = 600) {
  return {
    title, topics: [topic, ...more],
    mount(root, param, { go }) {
      const filter = h("input", { type: "search", placeholder: "filter by name", "aria-label": "Filter", "data-search": true,
        spellcheck: "false" });
      const told = h("span", { class: "dim" }), box = h("div"), above = h("div");
      let rows = table([], []), chosen = param, opened = null, seen = new Map(), last = null;
      root.append(h("div", { class: "bar" }, filter, told), above, rows, box);
      filter.addEventListener("input", () => last && draw());
      function draw() {
        const wanted = filter.value.toLowerCase();
        const items = last.items.map(([name, at, ...replies]) => ({ name, at, replies,
          ...(replies[0] && !isError(replies[0]) ? fields(replies[0]) : {}), error: replies.find(isError),
          before: seen.get(name)?.at(-2) }))
          .filter((i) => !wanted || show(i.name).toLowerCase().includes(wanted));
        told.textContent = many(last.total, noun) + (last.walked ? "" : ", still looking …") +
          (last.items.length < last.total ? ", " + whole(last.items.length) + " described" : "");
        rows = swap(rows,
          table([["name", (i) => show(i.name), "mono"], ...columns.map(([t, cell, kind]) => [t, (i) => (i.error ? "" : cell(i)), kind]),
          ["", (i) => i.error && h("span", { class: "error" }, show(i.error.error))]].filter((c) => c[0] || items.some((i) => i.error)),
        items, { pick: (i) => go(view, i.name), key: (i) => i.name, chosen, empty: last.walked ? "no " + noun : "looking …" }));
        const mine = items.find((i) => i.name === chosen);
        if (mine && !opened) open(mine);
        if (mine) opened?.update?.(mine, seen.get(chosen));
      }
      function open(item) {
        const inner = h("section");
        box.replaceChildren(h("h2", { class: "key" }, show(item.name)), inner);
        opened = detail(inner, item.name, item) || {};
      }
      return {
        on: {
          [topic](sample) {
            if (isError(sample)) return rows = swap(rows, problem(sample));
            last = sample;
            for (const [name, at, reply] of sample.items) {
              if (isError(reply)) continue;
              if (!seen.has(name)) seen.set(name, []);
              const all = seen.get(name);
              if (all.at(-1)?.at !== at) all.push({ at, ...fields(reply) });
              if (all.length > kept) all.shift();
            }
            draw();
          },
          ...(more.length ? { [more[0]]: (sample) => above.replaceChildren(about[more[0]](sample)) } : {}),
        },
        moved(name) {
          chosen = name;
          opened?.end?.();
          opened = null;
          box.replaceChildren();
          if (last) draw();
        },
        end: () => opened?.end?.(),
      };
    },
  };
}

// speed returns how much a counter of an item grows per second.
const speed = (i,
  name) => (i.before && i.at > i.before.at ? (1000 * Math.max(i[name] - i.before[name], 0)) / (i.at - i.before.at) : null);
const perSecond = (i, name) => { const n = speed(i, name); return n === null ? "" : count(n); };

// rates returns the growth of a counter over a history, for a plot.
const rates = (all, name) => all.map((s, n) => (n ? Math.max(s[name] - all[n - 1][name], 0) / ((s.at - all[n - 1].at) / 1000) : null));
const times = (all) => all.map((s) => s.at / 1000);

// pager pages by rank through the nodes that load(from, to) returns.
function pager(box, title, total, load, per = 50) {
  let at = 0;
  const place = h("div"), said = h("span", { class: "dim" });
  const back = h("button", { "aria-label": "Page before", onclick: () => { at -= per; draw(); } }, "‹"),
    on = h("button", { "aria-label": "Next page", onclick: () => { at += per; draw(); } }, "›");
  const again = h("button", { onclick: () => draw() }, "Refresh");
  box.append(h("div", { class: "panel" }, h("div", { class: "bar" }, h("b", null, title), said, h("span", { class: "spacer" }), again,
    back, on), place));
  async function draw() {
    try {
      const n = await total();
      if (at >= n) at = Math.max(0, Math.floor((n - 1) / per) * per);
      place.replaceChildren(n ? await load(at, at + per - 1) : h("span", { class: "dim" }, "none"));
      said.textContent = n ? whole(at + 1) + "–" + whole(Math.min(at + per, n)) + " of " + whole(n) : "";
      back.disabled = at === 0;
      on.disabled = at + per >= n;
    } catch (err) {
      place.replaceChildren(problem(err));
    }
  }
  draw();
  return draw;
}

const flag = (v) => (v === 1 || v === true ? "yes" : "");

const meter = (i) => h("progress", { class: "meter", max: i.bound, value: Math.min(i.length, i.bound), "aria-label": "Filled" });

export const pressure = listing("Pressure", "pressure", [
  ["messages", (i) => [i.bound ? meter(i) : "", " ", whole(i.length)], "n"],
  ["bound", (i) => i.bound || "none", "n"], ["in/s", (i) => perSecond(i, "produced_messages"), "n"],
    ["out/s", (i) => perSecond(i, "consumed_messages"), "n"],
  ["producer", (i) => (i.producer_free ? h("span", { class: "dim" }, "free") : show(i.producer || "?"))],
    ["consumer", (i) => (i.consumer_free ? h("span", { class: "dim" }, "free") : show(i.consumer || "?"))],
  ["waiting to put", (i) => i.blocked_producers || "", "n"], ["to get", (i) => i.blocked_consumers || "", "n"],
    ["reserved", (i) => i.reserved || "", "n"], ["redelivered", (i) => i.redelivered || "", "n"],
    ["delayed", (i) => i.delayed || "", "n"], ["dead", (i) => i.dead || "", "n"], ["closed", (i) => flag(i.closed)],
], "queue", (box, name) => {
  const depth = plot("Messages", [["messages", count], ["reserved", count], ["delayed", count], ["dead", count]]),
    flow = plot("Messages per second", [["put", count], ["taken", count]]);
  const known = h("div", { class: "panel" }), key = "__pressure__:" + name;
  box.append(h("div", { class: "plots" }, depth, flow), known);
  pager(box, "Messages, the next one first", () => call("LLEN", key), async (from, to) => {
    const part = await call("LRANGE", key, -1 - to, -1 - from);
    return table([["", (r) => r[0], "n"], ["message", (r) => show(r[1].slice(0, 500)) + (r[1].length > 500 ? " …" : ""), "wide mono"],
      ["length", (r) => size(r[1].length), "n"]], part.reverse().map((m, n) => [from + n + 1, m]));
  });
  may(["PRESSURE.PUT", name, "x"], ["PRESSURE.CLOSE", name], ["PRESSURE.DELETE", name],
    ["PRESSURE.RETRY", name, "ALL"]).then(([put, close, del, retry]) => {
    if (!put && !close && !del && !retry) return;
    box.append(h("div", { class: "panel" },
      put && form("put", [["value", "message"]],
      async (f) => { const n = await call("PRESSURE.PUT", name, f.value, "TIMEOUT", 1000); return n ? "put" : "the queue is full"; },
      "Put"),
      h("div", { class: "bar" }, close && sure("close the queue", () => call("PRESSURE.CLOSE", name, "TIMEOUT", 1000)),
        retry && sure("put dead messages back", () => call("PRESSURE.RETRY", name, "ALL")),
        del && sure("delete the queue", () => call("PRESSURE.DELETE", name, "TIMEOUT", 1000)))));
  });
  return {
    update(i, all) {
      depth.set([times(all), all.map((s) => s.length), all.map((s) => s.reserved), all.map((s) => s.delayed),
        all.map((s) => s.dead)]);
      flow.set([times(all), rates(all, "produced_messages"), rates(all, "consumed_messages")]);
      known.replaceChildren(facts([["producer",
        (i.producer ? show(i.producer) : "none yet") + (i.producer_free ? " (the role is free)" : " has the role")],
        ["consumer", (i.consumer ? show(i.consumer) : "none yet") + (i.consumer_free ? " (the role is free)" : " has the role")],
        ["put", whole(i.produced_messages) + " messages, " + size(i.produced_bytes)],
          ["taken", whole(i.consumed_messages) + " messages, " + size(i.consumed_bytes)]]));
    },
    end() { depth.end(); flow.end(); },
  };
});

export const atom = listing("Atom", "atom", [
  ["state", (i) => h("span", { class: i.state === "alive" ? "ok" : "dim" }, show(i.state || "?"))],
    ["backlog", (i) => whole(i.backlog), "n"], ["pending", (i) => whole(i.pending), "n"],
  ["silent for", (i) => (i.idle > 1e12 ? "ever" : duration(i.idle / 1000)), "n"], ["connections", (i) => i.connections, "n"],
    ["language", (i) => (i.language ? show(i.language) + " " + show(String(i.version || "")) : "")],
  ["streams", (i) => pairs(i.streams).length || "", "n"],
], "element", (box, name) => {
  const backlog = plot("Commands of the element", [["backlog", count], ["pending", count]]), streams = h("div"), consumers = h("div");
  const answer = h("div"), names = h("datalist", { id: "atom-commands" });
  box.append(h("div", { class: "plots" }, backlog), h("div", { class: "columns" }, streams, consumers), names);
  may(["ATOM.CALL", name, "command"]).then(([m]) => {
    if (!m) return;
    const f = form("call", [["command", "command"], ["data", "data"], ["timeout", "ms", "1000"]], async (v) => {
      const began = performance.now();
      const reply = await call("ATOM.CALL", name, v.command, ...(v.data ? ["DATA", v.data] : []), "TIMEOUT", v.timeout || 1000);
      answer.replaceChildren(h("p", { class: "dim" }, "after " + (performance.now() - began).toFixed(0) + " ms"), nest(reply));
    }, "Call");
    f.querySelector("input").setAttribute("list", "atom-commands");
    const ask = h("button", { class: "quiet", type: "button", onclick: async () => {
      try {
        const data = fields(await call("ATOM.CALL", name, "command_list", "TIMEOUT", 1000)).data;
        const found = [...String(data ?? "").matchAll(/[A-Za-z_][\w.-]*/g)].map((m) => m[0]);
        names.replaceChildren(...found.map((c) => h("option", { value: c })));
        answer.replaceChildren("commands: " + (found.join(", ") || "none"));
      } catch (err) { answer.replaceChildren(problem(err)); }
    } }, "which commands?");
    box.append(h("div", { class: "panel" }, f, ask, answer));
  });
  return {
    update(i, all) {
      backlog.set([times(all), all.map((s) => s.backlog), all.map((s) => s.pending)]);
      streams.replaceChildren(table([["stream", (s) => h("a", { href: "#/keys/" + encodeURIComponent("stream:" + name + ":" + s[0]) },
        show(s[0]))], ["entries", (s) => whole(plain(fields(s[1]).length)), "n"],
        ["last", (s) => clock(Number(String(fields(s[1])["last-id"]).split("-")[0]))]], pairs(i.streams),
        { empty: "no data streams" }));
      consumers.replaceChildren(table([["consumer", (s) => show(s[0])], ["pending", (s) => fields(s[1]).pending, "n"],
        ["idle", (s) => duration(fields(s[1]).idle / 1000), "n"]], pairs(i.consumers), { empty: "nobody takes its commands" }));
    },
    end: () => backlog.end(),
  };
});

export const spiderq = listing("Spiderq", "spiderq", [
  ["keys", (i) => whole(i.keys), "n"], ["to be lent", (i) => whole(i.queued), "n"], ["open tasks", (i) => whole(i.lent), "n"],
    ["changes", (i) => whole(i.serial - 1), "n"],
  ["requests", (i) => { const s = i.replies[1]; return isError(s) || !s ? "" : pairs(s).filter(([k, n]) => n && k !== "stats").map(([k,
    n]) => k + " " + count(plain(n))).join(", "); }],
], "queue", (box, name) => {
  const base = "spiderq:{" + name + "}";
  const depth = plot("Keys", [["to be lent", count], ["lent", count]]);
  box.append(h("div", { class: "plots" }, depth));
  const rowsOf = async (scored) => {
    if (!scored.length) return [];
    const names = scored.map((s) => s[0]);
    const [values, loans] = await run([["HMGET", base, ...names], ["HMGET", base + ":loans", ...names]]);
    return scored.map(([k, score], n) => ({ key: k, score: plain(score), value: list(values)[n], loan: list(loans)[n] }));
  };
  const text = (v) => (v === null || v === undefined ? "–" : show(v.slice(0, 300)) + (v.length > 300 ? " …" : ""));
  pager(box, "Open tasks, by when they return", () => call("ZCARD", base + ":lent"), async (from, to) => table(
    [["key", (r) => text(r.key), "wide mono"], ["value", (r) => text(r.value), "wide mono"], ["lend key", (r) => text(r.loan), "n"],
      ["returns", (r) => { const s = (Number(r.score) - Date.now()) / 1000; return s > 0 ? "in " + duration(s) : "now"; }, "n"]],
    await rowsOf(pairs(await call("ZRANGE", base + ":lent", from, to, "WITHSCORES")))));
  pager(box, "Queue, the next one first", () => call("ZCARD", base + ":queue"), async (from, to) => table(
    [["key", (r) => text(r.key), "wide mono"], ["value", (r) => text(r.value), "wide mono"]],
      await rowsOf(pairs(await call("ZRANGE", base + ":queue", from, to, "WITHSCORES")))));
  may(["SPIDERQ.ADD", name, "k", "v"]).then(([m]) => m && box.append(h("div", { class: "panel" },
    form("add", [["key", "key"], ["value", "value"]], async (f) => show(plain(await call("SPIDERQ.ADD", name, f.key, f.value))),
    "Add"))));
  return { update: (i, all) => depth.set([times(all), all.map((s) => s.queued), all.map((s) => s.lent)]), end: () => depth.end() };
});

// standard returns UTF-8 for the members of Skein's index, in which characters beyond U+FFFF are two surrogates of three bytes.
const standard = (member) => member.replace(/\xed([\xa0-\xaf])([\x80-\xbf])\xed([\xb0-\xbf])([\x80-\xbf])/g, (all, a, b, c, d) => {
  const high = ((a.charCodeAt(0) & 0x0f) << 6) | (b.charCodeAt(0) & 0x3f),
    low = ((c.charCodeAt(0) & 0x0f) << 6) | (d.charCodeAt(0) & 0x3f);
  const code = 0x10000 + (high << 10) + low;
  return String.fromCharCode(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f));
});

export const skein = listing("Skein", "skein", [
  ["keys", (i) => whole(i.keys), "n"], ["owned", (i) => whole(i.owned), "n"], ["services", (i) => i.services, "n"],
    ["containers", (i) => whole(i.containers), "n"], ["leases", (i) => i.leases, "n"],
  ["revision", (i) => whole(i.revision), "n"],
    ["status", (i) => show(String(i.status ?? "")) + (i.message ? ": " + show(String(i.message)) : "")],
], "application", (box, app) => {
  let put = false, revision = null;
  const again = pager(box, "Keys", () => call("ZCARD", "skein:{" + app + "}:index"), async (from, to) => {
    const names = (await call("ZRANGE", "skein:{" + app + "}:index", from, to)).map(standard);
    const values = await run(names.map((k) => ["SKEIN.GET", app, k]));
    return table([["key", (r) => show(r[0]), "wide mono"], ["value", (r) => show(String(plain(list(r[1])[0]) ?? "").slice(0, 400)),
      "wide mono"], ["owner", (r) => show(String(plain(list(r[1])[1]) ?? "")), "mono"],
      ["", (r) => put && sure("✕", async () => { await call("SKEIN.DEL", app, r[0], r[0] + "\0"); again(); })]],
        names.map((k, n) => [k, values[n]]));
  });
  const events = h("div", { class: "scroll", role: "log" }), heard = h("span", { class: "dim" });
  const start = h("input", { placeholder: "from", "aria-label": "From", spellcheck: "false" }),
    end = h("input", { placeholder: "to before", "aria-label": "To before", spellcheck: "false" });
  let watching = null;
  const button = h("button", { onclick: () => (watching ? stop() : watch()) }, "Watch");
  box.append(h("div", { class: "panel" }, h("div", { class: "bar" }, h("b", null, "Watch"), start, end, button, heard), events));
  function stop() {
    watching?.abort();
    watching = null;
    button.textContent = "Watch";
    heard.textContent = "";
  }
  async function watch() {
    const mine = (watching = new AbortController());
    button.textContent = "Stop";
    heard.textContent = "waiting for changes …";
    try {
      while (watching === mine) {
        const [e] = await run([["SKEIN.WATCH", app, unshow(start.value), unshow(end.value), "TIMEOUT", 20000]], mine.signal);
        if (isError(e)) throw new Error(show(e.error));
        if (!e || watching !== mine) continue;
        const [what, at, keys] = list(e);
        for (const k of list(keys)) {
          const [name, value, owner] = Array.isArray(k) ? k : [k];
          events.prepend(h("div", { class: "node mono" }, new Date().toTimeString().slice(0, 8), " ", show(plain(what)), " ",
            String(plain(at)), " ", show(name), value !== undefined && value !== null ? " = " + show(value.slice(0, 200)) : "",
            owner ? " (" + show(owner) + ")" : ""));
        }
        while (events.children.length > 500) events.lastChild.remove();
      }
    } catch (err) {
      if (err.name !== "AbortError") heard.replaceChildren(problem(err));
      if (watching === mine) stop();
    }
  }
  const containers = h("div");
  box.append(h("div", { class: "panel" }, h("div", { class: "bar" }, h("b", null, "Containers")), containers));
  const inhabit = async () => {
    try {
      const rows = (await call("SKEIN.CONTAINER", "LIST", app)).map(fields);
      containers.replaceChildren(table([["container", (c) => show(c.id)], ["state", (c) => show(c.state)],
        ["since", (c) => clock(c.start)], ["lease", (c) => show(String(c.lease))], ["message", (c) => show(String(c.message ?? ""))]],
        rows.slice(0, 500), { empty: "none that has not ended" }));
    } catch (err) { containers.replaceChildren(problem(err)); }
  };
  may(["SKEIN.PUT", app, "k", "VALUE", "v"]).then(([m]) => {
    if (!m) return;
    put = true;
    again();
    box.append(h("div", { class: "panel" },
      form("put", [["key", "key"], ["value", "value"]],
      (f) => call("SKEIN.PUT", app, f.key, "VALUE", f.value, "KEEPOWNER").then(() => undefined,
      () => call("SKEIN.PUT", app, f.key, "VALUE", f.value)).then(() => undefined), "Put")));
  });
  return {
    update(i) {
      if (i.revision === revision) return;
      if (revision !== null) again();
      revision = i.revision;
      inhabit();
    },
    end: stop,
  };
});

// about shows the other samples of a system.
const about = {
  perper(sample) {
    if (isError(sample)) return problem(sample);
    const locks = isError(sample.locks) ? [] : list(sample.locks), caches = isError(sample.caches) ? [] : list(sample.caches);
    return h("div", { class: "tiles" }, [["executions", isError(sample.executions) ? "–" : whole(plain(sample.executions))],
      ["reserved", whole(Array.isArray(locks[0]) ? locks.length : locks.length / 2)], ["caches", whole(caches.length)]]
      .map(([k, v]) => h("div", { class: "tile" }, h("b", null, v), h("span", null, k))));
  },
};

export const perper = listing("Perper", "agents", [
  ["instances", (i) => whole(i.instances), "n"], ["executions", (i) => whole(i.executions), "n"],
    ["not finished", (i) => whole(i.unfinished), "n"],
], "agent", (box, agent) => {
  const open = plot("Executions", [["not finished", count], ["all", count]]);
  box.append(h("div", { class: "plots" }, open));
  let rows = [], locks = new Map();
  const again = pager(box, "Executions that are not finished", async () => {
    rows = list(await call("PERPER.EXECUTIONS", agent));
    if (!Array.isArray(rows[0])) rows = Array.from({ length: rows.length / 3 }, (_, n) => rows.slice(3 * n, 3 * n + 3));
    locks = new Map();
    for (const [group, execution] of pairs(await call("PERPER.LOCKS").catch(() => []))) locks.set(plain(execution),
      [...(locks.get(plain(execution)) || []), group]);
    return rows.length;
  }, async (from, to) => {
    const part = rows.slice(from, to + 1);
    const data = await run(part.map((r) => ["PERPER.GET", "executions", plain(r[0])]));
    return table([["execution", (r) => show(r[0]), "mono"], ["instance", (r) => show(r[1]), "mono"],
      ["delegate", (r) => show(r[2]), "mono"], ["reserved in", (r) => (locks.get(r[0]) || []).map((g) => show(g)).join(", ")],
      ["data", (r) => (isError(r[3]) || r[3] === null ? "" : show(String(plain(r[3])).slice(0, 300))), "wide mono"],
        ["", (r) => cancel && sure("cancel", async () => { await call("PERPER.CANCEL", r[0]); again(); })]],
        part.map((r, n) => [...r.map(plain), data[n]]));
  });
  let cancel = false;
  may(["PERPER.CANCEL", "x"], ["PERPER.CALL", agent, "i", "d"]).then(([c, m]) => {
    if (c) {
      cancel = true;
      again();
    }
    if (m) box.append(h("div", { class: "panel" }, form("call", [["instance", "instance"], ["delegate", "delegate"]],
      async (f) => { const id = await call("PERPER.CALL", agent, f.instance, f.delegate); again(); return show(plain(id)); }, "Call")));
  });
  let unfinished = null;
  return {
    update(i, all) {
      open.set([times(all), all.map((s) => s.unfinished), all.map((s) => s.executions)]);
      if (unfinished !== null && unfinished !== i.unfinished) again();
      unfinished = i.unfinished;
    },
    end: () => open.end(),
  };
}, ["perper"], "perper");
