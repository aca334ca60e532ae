// A browser for the values of each type, page by page, with forms for changes that the user may make.
import { h, show, quote, unshow, many, whole, size, duration, clock, count, run, call, may, plain, list, pairs, fields, isError, problem,
  facts, nest, table, form, sure, toText } from "./lib.js";
import { typeName } from "./keys.js";
import { plot } from "./plot.js";

const per = 100; // elements of a page

// browse shows the value of a key in a box. gone is called when the key is deleted.
export async function browse(box, key, gone) {
  const [kind, ttl, memory, encoding, idle] = await run([["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key],
    ["OBJECT", "ENCODING", key], ["OBJECT", "IDLETIME", key]]);
  if (isError(kind)) return void box.append(problem(kind));
  const type = plain(kind);
  const v = { key, type, box, writes: {}, end: null };
  const about = [["type", typeName(type)]];
  if (typeof memory === "number") about.push(["memory", size(memory)]);
  if (typeof encoding === "string") about.push(["encoding", encoding]);
  if (typeof ttl === "number") about.push(["expires", ttl < 0 ? "never" : "in " + duration(ttl / 1000)]);
  if (typeof idle === "number") about.push(["idle", duration(idle)]);
  const panel = h("div", { class: "panel" }, h("p", { class: "keyname key" }, key === "" ? '""' : show(key)));
  box.append(panel);
  if (type === "none") {
    panel.append(h("p", { class: "dim" }, "There is no such key."));
    const [m] = await may(["SET", key, "x"]);
    if (m) panel.append(form("new", [["value", "value of a string"]],
      async (f) => { await call("SET", key, f.value, "NX"); await again(); }, "Set"));
    return v;
  }
  panel.append(facts(about, "inline"));
  async function again() {
    v.end?.();
    box.replaceChildren();
    Object.assign(v, await browse(box, key, gone));
  }
  v.again = again;
  const asked = { del: ["UNLINK", key], expire: ["PEXPIRE", key, "1000"], persist: ["PERSIST", key], rename: ["RENAMENX", key, key],
    ...(kinds[type]?.writes?.(key) || {}) };
  const allowed = await may(...Object.values(asked));
  Object.keys(asked).forEach((name, i) => { v.writes[name] = allowed[i]; });
  if (v.writes.del || v.writes.expire || v.writes.rename) {
    panel.append(h("div", { class: "bar" },
      v.writes.expire && form("", [["ms", "seconds to live"]],
        async (f) => { await call("PEXPIRE", key, Math.round(Number(f.ms) * 1000)); await again(); }, "Expire"),
      v.writes.persist && ttl > 0 && h("button", { class: "quiet", onclick: () => call("PERSIST", key).then(again) }, "never expire"),
      v.writes.del && sure("delete the key", async () => { await call("UNLINK", key); gone(); })));
  }
  try {
    await (kinds[type]?.show || other)(v);
  } catch (err) {
    box.append(problem(err));
  }
  return v;
}

// pages adds a pager above a place for a page. load(position) returns [nodes, the position of the next page or null].
async function pages(v, title, load, first = 0, extra = []) {
  const at = [first];
  let next = null;
  const place = h("div"), said = h("span", { class: "dim" }, title);
  const back = h("button", { "aria-label": "Page before" }, "‹"), on = h("button", { "aria-label": "Next page" }, "›");
  v.box.append(h("div", { class: "panel" }, h("div", { class: "bar" }, said, h("span", { class: "spacer" }), extra, back, on), place));
  async function draw() {
    try {
      const [nodes, following] = await load(at.at(-1));
      next = following;
      place.replaceChildren(...[nodes].flat());
    } catch (err) {
      place.replaceChildren(problem(err));
    }
    back.disabled = at.length === 1;
    on.disabled = next === null;
  }
  back.onclick = () => { at.pop(); draw(); };
  on.onclick = () => { at.push(next); draw(); };
  await draw();
  return { draw, restart: () => { at.length = 0; at.push(first); return draw(); } };
}

// long shows bytes that may be long, in a cell or as a block.
const long = (bytes) => {
  const text = show(String(bytes), true);
  return text.length <= 400 ? text : [text.slice(0, 400) + " … ",
    h("button", { class: "chip", onclick: (e) => { e.stopPropagation(); e.target.parentElement.textContent = text; } },
    size(String(bytes).length))];
};

// edit is a button that puts a form with a value in the place of its row.
const edit = (label, value, save) => h("button", { class: "quiet", onclick: (e) => {
  e.stopPropagation();
  const row = e.target.closest("tr");
  row.after(h("tr", null,
    h("td", { colspan: row.children.length },
    form(label, [["value", "value", show(String(value), true), String(value).length > 60 || /\n/.test(value) ? "long" : ""]],
      unlessSame(value, save)))));
  e.target.disabled = true;
} }, "edit");

// unlessSame saves the value of a form unless it is unchanged.
const unlessSame = (value, save) => (f) => (f.value === String(value) ? "unchanged" : save(f));

const element = (v, writes, columns, rows, buttons) => table(
  writes ? [...columns, ["", buttons]] : columns, rows, { empty: "nothing on this page" });

// scanning pages through a cursor. Each element consists of as many replies as there are columns.
function scanning(v, command, length, columns, each, { buttons, writes } = {}) {
  const match = h("input", { type: "search", placeholder: "pattern", "aria-label": "Pattern of elements" });
  return call(length, v.key).then(async (n) => {
    const p = await pages(v, many(n, "element"), async (cursor) => {
      let found = [], begin = performance.now();
      do {
        const [next, part] = await call(command, v.key, cursor, ...(match.value ? ["MATCH", unshow(match.value)] : []), "COUNT", per);
        cursor = plain(next);
        found.push(...list(part));
      } while (cursor !== "0" && found.length < per * each / 2 && performance.now() - begin < 2000);
      const rows = [];
      for (let i = 0; i < found.length; i += each) rows.push(found.slice(i, i + each).map(plain));
      return [element(v, writes, columns, rows, buttons), cursor === "0" ? null : cursor];
    }, "0", [match]);
    match.addEventListener("change", p.restart);
    return p;
  });
}

const kinds = {
  string: {
    writes: (key) => ({ set: ["SET", key, "x", "KEEPTTL"] }),
    async show(v) {
      const length = await call("STRLEN", v.key), chunk = 16384;
      const whole = length <= chunk ? await call("GET", v.key) : null, formatted = whole !== null && indented(whole);
      let how = formatted ? "JSON" : "text";
      const modes = ["text", ...(formatted ? ["JSON"] : []), "hex"].map((m) => h("button", { onclick: () => { how = m; p.draw(); } }, m));
      const p = await pages(v, many(length, "byte"), async (at) => {
        const bytes = await call("GETRANGE", v.key, at, at + chunk - 1);
        for (const b of modes) b.setAttribute("aria-pressed", String(b.textContent === how));
        const block = h("pre", null, how === "hex" ? dump(bytes, at) : how === "JSON" ? formatted : toText(bytes) === null && length > chunk ? quote(bytes) : show(bytes, true));
        return [block, at + chunk < length ? at + chunk : null];
      }, 0, modes);
      if (v.writes.set && whole !== null) {
        const value = whole;
        v.box.append(h("div", { class: "panel" }, form("value", [["value", "value", show(value, true), "long"]],
          unlessSame(value, async (f) => { await call("SET", v.key, f.value, "KEEPTTL"); await v.again(); }))));
      }
    },
  },
  hash: {
    writes: (key) => ({ set: ["HSET", key, "f", "v"], del2: ["HDEL", key, "f"] }),
    async show(v) {
      const p = await scanning(v, "HSCAN", "HLEN", [["field", (r) => long(r[0]), "wide mono"], ["value", (r) => long(r[1]), "wide mono"]],
        2, { writes: v.writes.set || v.writes.del2,
        buttons: (r) => [v.writes.set && edit("value", r[1], async (f) => { await call("HSET", v.key, r[0], f.value); p.draw(); }),
          v.writes.del2 && sure("✕", async () => { await call("HDEL", v.key, r[0]); p.draw(); })] });
      if (v.writes.set) add(v, [["field", "field"], ["value", "value"]], (f) => call("HSET", v.key, f.field, f.value), p);
    },
  },
  list: {
    writes: (key) => ({ set: ["LSET", key, "0", "x"], push: ["RPUSH", key, "x"] }),
    async show(v) {
      const n = await call("LLEN", v.key);
      const p = await pages(v, many(n, "element"), async (at) => {
        const rows = (await call("LRANGE", v.key, at, at + per - 1)).map((e, i) => [at + i, e]);
        return [element(v, v.writes.set, [["index", (r) => r[0], "n"], ["element", (r) => long(r[1]), "wide mono"]], rows,
          (r) => edit("element", r[1], async (f) => { await call("LSET", v.key, r[0], f.value); p.draw(); })),
            at + per < n ? at + per : null];
      });
      if (v.writes.push) add(v, [["value", "element at the end"]], (f) => call("RPUSH", v.key, f.value), p);
    },
  },
  set: {
    writes: (key) => ({ add: ["SADD", key, "x"], rem: ["SREM", key, "x"] }),
    async show(v) {
      const p = await scanning(v, "SSCAN", "SCARD", [["member", (r) => long(r[0]), "wide mono"]], 1,
        { writes: v.writes.rem, buttons: (r) => sure("✕", async () => { await call("SREM", v.key, r[0]); p.draw(); }) });
      if (v.writes.add) add(v, [["value", "member"]], (f) => call("SADD", v.key, f.value), p);
    },
  },
  zset: {
    writes: (key) => ({ add: ["ZADD", key, "1", "x"], rem: ["ZREM", key, "x"] }),
    async show(v) {
      const n = await call("ZCARD", v.key);
      const p = await pages(v, many(n, "member"), async (at) => {
        const rows = pairs(await call("ZRANGE", v.key, at, at + per - 1, "WITHSCORES"));
        return [element(v, v.writes.add || v.writes.rem,
          [["score", (r) => String(plain(r[1])), "n"], ["member", (r) => long(r[0]), "wide mono"]], rows,
          (r) => [v.writes.add && edit("score", String(plain(r[1])),
            async (f) => { await call("ZADD", v.key, f.value, r[0]); p.draw(); }),
            v.writes.rem && sure("✕", async () => { await call("ZREM", v.key, r[0]); p.draw(); })]),
          at + per < n ? at + per : null];
      });
      if (v.writes.add) add(v, [["score", "score"], ["value", "member"]], (f) => call("ZADD", v.key, f.score, f.value), p);
    },
  },
  stream: {
    writes: (key) => ({ add: ["XADD", key, "*", "f", "v"], del2: ["XDEL", key, "0-1"], ack: ["XACK", key, "g", "0-1"] }),
    async show(v) {
      const n = await call("XLEN", v.key);
      let newest = true;
      const order = h("button", { onclick: () => {
        newest = !newest;
        order.textContent = newest ? "newest first" : "oldest first";
        p.restart();
      } }, "newest first");
      const p = await pages(v, many(n, "entry", "entries"), async (at) => {
        const entries = await (newest ? call("XREVRANGE", v.key, at || "+", "-", "COUNT", per) : call("XRANGE", v.key, at || "-", "+",
          "COUNT", per));
        return [element(v, v.writes.del2, [["id", (e) => e[0], "mono"], ["when", (e) => clock(Number(e[0].split("-")[0]))],
          ["fields", (e) => facts(pairs(e[1]).map(([f, x]) => [show(f), long(x)])), "wide mono"]], entries,
          (e) => sure("✕", async () => { await call("XDEL", v.key, e[0]); p.draw(); })),
            entries.length === per ? "(" + entries.at(-1)[0] : null];
      }, "", [order]);
      if (v.writes.add) add(v, [["field", "field"], ["value", "value"]], (f) => call("XADD", v.key, "*", f.field, f.value), p);
      await groups(v);
    },
  },
  "ReJSON-RL": {
    writes: (key) => ({ set: ["JSON.SET", key, "$", "1"] }),
    async show(v) {
      // A legacy path, without $, returns one value, not a list of matches, so the shown value can be set again.
      const one = (path) => (path === "$" ? "." : path.startsWith("$") ? path.slice(1) : path);
      const all = (path) => (path.startsWith("$") ? path : path === "." ? "$" : /^[.[]/.test(path) ? "$" + path : "$." + path);
      const path = h("input", { value: "$", "aria-label": "Path", spellcheck: "false" }), place = h("div");
      const p = await pages(v, "JSON at", async () => {
        const at = unshow(path.value) || "$", found = list(await call("JSON.TYPE", v.key, all(at))).flat().length;
        const text = await call("JSON.GET", v.key, "INDENT", "  ", "NEWLINE", "\n", "SPACE", " ", found === 1 ? one(at) : all(at));
        await change(at, found);
        return [h("pre", null,
          text === null ? "nothing" : show(text.slice(0, 262144),
          true) + (text.length > 262144 ? "\n… " + size(text.length) + " in all: narrow the path" : "")), null];
      }, 0, [path]);
      path.addEventListener("change", p.draw);
      v.box.append(place);
      // change shows a form for the value at a path.
      async function change(at, found) {
        if (!v.writes.set) return;
        const text = found === 1 ? await call("JSON.GET", v.key, one(at)) : "";
        const shown = text.length <= 65536 ? text : "";
        place.replaceChildren(h("div", { class: "panel" }, form("change", [["path", "path", show(at)], ["value", "JSON", show(shown, true), "long"]],
          async (f) => {
            if (f.path === at && f.value === shown) return "unchanged";
            await call("JSON.SET", v.key, f.path, f.value);
            await p.draw();
          }, "Set")));
      }
    },
  },
  "TSDB-TYPE": {
    writes: (key) => ({ add: ["TS.ADD", key, "*", "1"] }),
    async show(v) {
      const info = fields(await call("TS.INFO", v.key));
      const from = Number(info.firstTimestamp), to = Number(info.lastTimestamp), bucket = Math.ceil((to - from) / 1000);
      const samples = await call("TS.RANGE", v.key, "-", "+",
        ...(info.totalSamples > 1000 && bucket > 0 ? ["AGGREGATION", "avg", bucket] : []));
      const figure = plot(info.totalSamples > 1000 ? "mean of " + duration(bucket / 1000) : "samples",
        [["value", (x) => String(Number(x.toPrecision(6)))]], { height: 240 });
      v.box.append(figure);
      figure.set([samples.map((s) => s[0] / 1000), samples.map((s) => Number(plain(s[1])))]);
      v.end = () => figure.end();
      await pages(v, many(info.totalSamples, "sample") + ", newest first", async (at) => {
        const rows = await call("TS.REVRANGE", v.key, "-", at, "COUNT", per);
        return [element(v, false, [["when", (s) => clock(s[0])], ["timestamp", (s) => s[0], "n"],
          ["value", (s) => String(plain(s[1])), "n"]], rows), rows.length === per ? rows.at(-1)[0] - 1 : null];
      }, "+");
      v.box.append(h("div", { class: "panel" }, nest({ map: Object.entries(info).flat() })));
      if (v.writes.add) add(v, [["at", "timestamp", "*"], ["value", "value"]], (f) => call("TS.ADD", v.key, f.at, f.value),
        { draw: v.again });
    },
  },
  vectorset: {
    writes: (key) => ({ rem: ["VREM", key, "x"] }),
    async show(v) {
      v.box.append(h("div", { class: "panel" }, nest(await call("VINFO", v.key))));
      const p = await pages(v, many(await call("VCARD", v.key), "element"), async (at) => {
        const names = await call("VRANGE", v.key, at, "+", per);
        const attributes = await run(names.map((n) => ["VGETATTR", v.key, n]));
        return [table([["element", (r) => long(r[0]), "wide mono"], ["attributes", (r) => (r[1] === null ? "" : long(r[1])), "wide mono"],
          ["", (r) => [h("button", { class: "quiet", onclick: () => near(r[0]) }, "near"),
            v.writes.rem && sure("✕", async () => { await call("VREM", v.key, r[0]); p.draw(); })]]],
        names.map((n, i) => [n, attributes[i]])), names.length === per ? "(" + names.at(-1) : null];
      }, "-");
      const place = h("div");
      v.box.append(place);
      async function near(name) {
        const rows = pairs(await call("VSIM", v.key, "ELE", name, "WITHSCORES", "COUNT", 20));
        place.replaceChildren(h("div", { class: "panel" },
          h("div", { class: "bar" }, "nearest to ", h("b", { class: "key" }, show(name))),
          table([["element", (r) => show(String(r[0])), "wide mono"], ["similarity", (r) => plain(r[1]).toFixed(4), "n"]], rows)));
      }
    },
  },
  array: {
    writes: (key) => ({ set: ["ARSET", key, "0", "x"], del2: ["ARDEL", key, "0"] }),
    async show(v) {
      const info = fields(await call("ARINFO", v.key));
      const p = await pages(v, many(info.count, "element") + ", length " + whole(info.len), async (at) => {
        const rows = pairs(await call("ARSCAN", v.key, at, Math.max(info.len - 1, 0), "LIMIT", per));
        return [element(v, v.writes.set || v.writes.del2,
          [["index", (r) => whole(r[0]), "n"], ["element", (r) => long(plain(r[1])), "wide mono"]], rows,
          (r) => [v.writes.set && edit("element", plain(r[1]), async (f) => { await call("ARSET", v.key, r[0], f.value); p.draw(); }),
            v.writes.del2 && sure("✕", async () => { await call("ARDEL", v.key, r[0]); p.draw(); })]),
          rows.length === per ? rows.at(-1)[0] + 1 : null];
      });
      if (v.writes.set) add(v, [["index", "index"], ["value", "element"]], (f) => call("ARSET", v.key, f.index, f.value), p);
      v.box.append(h("div", { class: "panel" }, nest({ map: Object.entries(info).flat() })));
    },
  },
  "MBbloom--": sketch("BF.INFO"),
  "MBbloomCF": sketch("CF.INFO"),
  "CMSk-TYPE": sketch("CMS.INFO"),
  "TDIS-TYPE": sketch("TDIGEST.INFO", async (v) => {
    const at = [0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1];
    const values = list(await call("TDIGEST.QUANTILE", v.key, ...at));
    return table([["quantile", (r) => r[0], "n"], ["estimate", (r) => r[1], "n"]], at.map((q, i) => [q, String(plain(values[i]))]));
  }),
  "TopK-TYPE": sketch("TOPK.INFO",
    async (v) => table([["item", (r) => show(String(r[0])), "wide mono"], ["about", (r) => whole(plain(r[1])), "n"]],
    pairs(await call("TOPK.LIST", v.key, "WITHCOUNT")))),
};

// sketch is a browser for types that only have a description.
function sketch(info, more) {
  return { async show(v) {
    v.box.append(h("div", { class: "panel" }, nest(await call(info, v.key)), more ? await more(v) : ""));
  } };
}

const other = async (v) => { v.box.append(h("p", { class: "panel dim" },
  "The console has no view of this type; the command line shows it.")); };

const add = (v, inputs, act, p, label = "Add") => v.box.append(h("div", { class: "panel" },
  form(label === "Add" ? "add" : "change", inputs, async (f) => { await act(f); await p.draw(); }, label)));

// groups shows the groups of a stream with their consumers and pending entries.
async function groups(v) {
  const place = h("div"), detail = h("div");
  v.box.append(h("div", { class: "panel" }, h("div", { class: "bar" }, h("b", null, "Groups")), place), detail);
  let chosen = "";
  async function draw() {
    const rows = (await call("XINFO", "GROUPS", v.key)).map(fields);
    place.replaceChildren(table([["group", (g) => show(g.name), "mono"], ["consumers", (g) => g.consumers, "n"],
      ["pending", (g) => whole(g.pending), "n"], ["lag", (g) => (g.lag === null ? "–" : whole(g.lag)), "n"],
      ["read", (g) => (g["entries-read"] === null ? "–" : whole(g["entries-read"])), "n"],
        ["last delivered", (g) => g["last-delivered-id"], "mono"]], rows,
        { pick: (g) => only(g), key: (g) => g.name, chosen, empty: "no groups" }));
    return rows;
  }
  async function only(g) {
    chosen = g.name;
    draw();
    detail.replaceChildren();
    await open(g);
  }
  async function open(g) {
    const inner = { ...v,
      box: h("div", { class: "panel" }, h("div", { class: "bar" }, h("b", null, "Group "), h("span", { class: "key" }, show(g.name)))) };
    detail.append(inner.box);
    inner.box.append(table([["consumer", (c) => show(c.name), "mono"], ["pending", (c) => whole(c.pending), "n"],
      ["idle", (c) => duration(c.idle / 1000), "n"], ["inactive", (c) => (c.inactive < 0 ? "–" : duration(c.inactive / 1000)), "n"]],
      (await call("XINFO", "CONSUMERS", v.key, g.name)).map(fields), { empty: "no consumers" }));
    const p = await pages(inner, whole(g.pending) + " pending", async (at) => {
      const rows = await call("XPENDING", v.key, g.name, at, "+", per);
      return [element(v, v.writes.ack, [["id", (e) => e[0], "mono"], ["consumer", (e) => show(e[1]), "mono"],
        ["since", (e) => duration(e[2] / 1000), "n"], ["deliveries", (e) => count(e[3]), "n"]], rows,
        (e) => sure("acknowledge", async () => { await call("XACK", v.key, g.name, e[0]); p.draw(); draw(); })),
          rows.length === per ? "(" + rows.at(-1)[0] : null];
    }, "-");
  }
  for (const g of (await draw()).slice(0, 8)) await open(g); // the others open on demand
}

// indented returns a JSON object or array with its parts on separate lines, or null for another text. Numbers and
// strings do not change.
function indented(bytes) {
  const text = toText(bytes);
  if (text === null || !/^\s*[[{]/.test(text)) return null;
  try { JSON.parse(text); } catch { return null; }
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return text.match(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{}:,]|[^\s[\]{}:,"]+/g).map((part) => {
    if (/^[[{]\s*[\]}]$/.test(part)) return part[0] + part.at(-1);
    if (part === "[" || part === "{") { depth++; return part + line(); }
    if (part === "]" || part === "}") { depth--; return line() + part; }
    return part === "," ? part + line() : part === ":" ? ": " : part;
  }).join("");
}

// dump shows bytes as hexadecimal numbers and characters.
function dump(bytes, at) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 16) {
    const row = bytes.slice(i, i + 16);
    const hex = [...row].map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    lines.push((at + i).toString(16).padStart(8, "0") + "  " + hex.padEnd(48) + " " + row.replace(/[^\x20-\x7e]/g, "."));
  }
  return lines.join("\n");
}
