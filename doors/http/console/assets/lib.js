// Functions for all views: elements, bytes, numbers, requests. Data becomes text nodes and attributes, never HTML.

// h makes an element. Attributes that begin with "on" are listeners; true is an attribute without a value.
export function h(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "value") e.value = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

export const $ = (selector, in_ = document) => in_.querySelector(selector);

// Bytes are strings with a character from U+0000 to U+00FF for each byte, as the server sends them.

// fromText returns the bytes of a text in UTF-8.
export function fromText(text) {
  let bytes = "";
  for (const b of new TextEncoder().encode(text)) bytes += String.fromCharCode(b);
  return bytes;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// toText decodes bytes as UTF-8; null if they are not.
export function toText(bytes) {
  if (/^[\x00-\x7f]*$/.test(bytes)) return bytes;
  try {
    return decoder.decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x07": "\\a", "\b": "\\b", '"': '\\"', "\\": "\\\\" };

// quote returns bytes as redis-cli shows them.
export function quote(bytes) {
  return '"' + bytes.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g,
    (c) => escapes[c] || "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + '"';
}

// show returns bytes for people: text without invisible characters unchanged, other bytes quoted. unshow is the
// inverse.
export function show(bytes, lines = false) {
  const text = toText(bytes);
  const unseen = lines ? /[^\P{C}\n\t]|[\u2028\u2029]/u : /[\p{C}\u2028\u2029]/u;
  return text === null || text.startsWith('"') || unseen.test(text) ? quote(bytes) : text;
}

export function unshow(text) {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return fromText(text);
  return unquote(text.slice(1, -1));
}

// unquote returns the bytes of a text between double quotes.
export function unquote(inner) {
  const back = { n: "\n", r: "\r", t: "\t", a: "\x07", b: "\b" };
  return inner.replace(/\\x([0-9a-fA-F]{2})|\\([^])|[^\\]+/g, (all, hex, c) =>
    hex ? String.fromCharCode(parseInt(hex, 16)) : c ? back[c] || fromText(c) : fromText(all));
}

// Replies: strings, numbers, null, booleans and arrays are themselves, others are objects with one member.

// plain returns a reply other than a collection as a string of bytes, a number, or null.
export function plain(r) {
  if (r === null || typeof r !== "object" || Array.isArray(r)) return r;
  for (const kind of ["status", "text", "big"]) if (kind in r) return r[kind];
  if ("double" in r) return Number(r.double.replace("inf", "Infinity"));
  return r;
}

// list returns the elements of an array, a set, or a map, keys and values in turn.
export const list = (r) => (Array.isArray(r) ? r : r?.map || r?.set || []);
export const isMap = (r) => !Array.isArray(r) && !!r?.map;

// pairs returns keys and values of a map, or of an array that has them in turn or as pairs.
export function pairs(r) {
  const flat = list(r);
  if (flat.length && Array.isArray(flat[0])) return flat.map(([k, v]) => [plain(k), v]);
  const out = [];
  for (let i = 0; i + 1 < flat.length; i += 2) out.push([plain(flat[i]), flat[i + 1]]);
  return out;
}

// fields returns a map as an object, whose values are plain where they can be.
export const fields = (r) => Object.assign(Object.create(null), Object.fromEntries(pairs(r).map(([k, v]) => [k, plain(v)])));

export const isError = (r) => r !== null && typeof r === "object" && "error" in r;

// Requests.

export class Refused extends Error {}

export const page = { db: 0, user: "", onLost: () => {} };

// post sends a request and returns the answer. It notifies the page when the session has ended.
export async function post(path, body, signal) {
  const r = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  const answer = await r.json().catch(() => ({ error: r.statusText }));
  if (r.ok) return answer;
  if (r.status === 401 && path !== "session") page.onLost();
  throw new Refused(answer.error);
}

const bytesOf = (word) => String(word);

// run executes commands, whose words are bytes or numbers, and returns their replies, errors among them.
export async function run(commands, signal) {
  if (!commands.length) return [];
  return (await post("do", { db: page.db, commands: commands.map((c) => c.map(bytesOf)) }, signal)).replies;
}

// call executes a command and returns its reply; an error is thrown.
export async function call(...words) {
  const [reply] = await run([words]);
  if (isError(reply)) throw new Refused(show(reply.error));
  return reply;
}

// may returns which commands the user may call.
export const may = async (...commands) => (await post("may", { db: page.db, commands: commands.map((c) => c.map(bytesOf)) })).may;

// Numbers.

export function count(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  const abs = Math.abs(n);
  if (abs >= 1e9) return (n / 1e9).toFixed(abs >= 1e11 ? 0 : 1) + "G";
  if (abs >= 1e6) return (n / 1e6).toFixed(abs >= 1e8 ? 0 : 1) + "M";
  if (abs >= 1e4) return (n / 1e3).toFixed(abs >= 1e5 ? 0 : 1) + "k";
  return Number.isInteger(n) ? String(n) : n.toFixed(abs < 10 ? 1 : 0);
}

export const whole = (n) => Number(n).toLocaleString("en").replaceAll(",", "\u202f");

export const many = (n, noun, nouns = noun + (noun.endsWith("x") ? "es" : "s")) => whole(n) + " " + (Number(n) === 1 ? noun : nouns);

export function size(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  for (n = Number(n); Math.abs(n) >= 1000 && i < units.length - 1; i++) n /= 1024;
  return (i && Math.abs(n) < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export function micros(us) {
  if (us === null || us === undefined || Number.isNaN(us)) return "–";
  if (us >= 1e6) return (us / 1e6).toFixed(2) + " s";
  if (us >= 1000) return (us / 1000).toFixed(us >= 1e5 ? 0 : 1) + " ms";
  return (us < 10 && us % 1 ? us.toFixed(1) : Math.round(us)) + " µs";
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  const s = Math.round(Math.max(seconds, 0));
  if (s < 60) return (seconds < 10 && seconds % 1 ? seconds.toFixed(1) : s) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

export const clock = (ms) => (ms > 1e11 ? new Date(ms).toLocaleString("sv") : "–");

// Parts of views.

// table returns a table. A column is [title, cell, class]; cell returns text or nodes for a row. With pick, rows can be chosen
// by mouse and keyboard.
export function table(columns, rows, { pick, key, chosen, empty = "nothing" } = {}) {
  const body = h("tbody", null, rows.map((row) => {
    const open = pick && (() => pick(row));
    const tr = h("tr", {
      class: pick && "pick" + (key && key(row) === chosen ? " chosen" : ""), tabindex: pick && "0", onclick: open || (() => {}),
      onkeydown: (e) => {
        if (!pick || e.target !== tr) return;
        if (e.key === "Enter") open();
        if (e.key === "ArrowDown") tr.nextElementSibling?.focus();
        if (e.key === "ArrowUp") tr.previousElementSibling?.focus();
        if (e.key.startsWith("Arrow")) e.preventDefault();
      },
    }, columns.map(([, cell, kind]) => h("td", { class: kind }, cell(row) ?? "")));
    return tr;
  }));
  if (!rows.length) body.append(h("tr", null, h("td", { colspan: columns.length, class: "dim" }, empty)));
  return h("div", { class: "scroll" }, h("table", null, h("thead", null, h("tr", null,
    columns.map(([title, , kind]) => h("th", { class: kind, scope: "col" }, title)))), body));
}

// swap puts a new table in the place of an old one and keeps where it was scrolled, and the row that had the focus.
export function swap(old, fresh) {
  const rows = [...old.querySelectorAll("tbody tr")];
  const at = rows.indexOf(document.activeElement);
  const { scrollTop, scrollLeft } = old;
  old.replaceWith(fresh);
  fresh.scrollTop = scrollTop;
  fresh.scrollLeft = scrollLeft;
  if (at >= 0) fresh.querySelectorAll("tbody tr")[at]?.focus({ preventScroll: true });
  return fresh;
}

// facts returns a list of names and values.
export const facts = (entries, kind = "facts") => h("dl", { class: kind }, entries.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));

// nest returns a reply as text or, if it is a collection, as a list.
export function nest(r) {
  if (isError(r)) return h("span", { class: "error" }, show(r.error));
  if (isMap(r)) return facts(pairs(r).map(([k, v]) => [show(String(k)), nest(v)]));
  if (Array.isArray(r) || r?.set) return list(r).length ? h("ol", { class: "nest" }, list(r).map((e) => h("li", null, nest(e)))) : "none";
  const p = plain(r);
  return p === null ? "–" : typeof p === "string" ? show(p) : String(p);
}

export const problem = (err) => h("p", { class: "error", role: "alert" }, err.error !== undefined ? show(err.error) : err.message);

// form returns a form on one line. An input is [name, placeholder, value, kind]; submit gets an object with the bytes.
export function form(title, inputs, submit, label = "Save") {
  const out = h("output", { role: "status" });
  const boxes = inputs.map(([name, placeholder, value = "", kind]) => h(kind === "long" ? "textarea" : "input", {
    name, placeholder, "aria-label": placeholder, value, autocapitalize: "off", spellcheck: "false", rows: kind === "long" && 6 }));
  const f = h("form", { class: "line" + (inputs.some((i) => i[3] === "long") ? " long" : ""), onsubmit: async (e) => {
    e.preventDefault();
    out.replaceChildren();
    try {
      const said = await submit(Object.fromEntries(boxes.map((b) => [b.name, unshow(b.value)])));
      if (said !== undefined) out.replaceChildren(said);
    } catch (err) {
      out.replaceChildren(h("span", { class: "error" }, err.message));
    }
  } }, h("span", { class: "title" }, title), boxes, h("button", null, label), out);
  return f;
}

// sure is a button that acts when it is pressed a second time.
export function sure(label, act) {
  let armed = null;
  const b = h("button", { class: "quiet danger", type: "button", onclick: async (e) => {
    e.stopPropagation();
    if (!armed) {
      b.textContent = "sure?";
      armed = setTimeout(() => { armed = null; b.textContent = label; }, 3000);
      return;
    }
    clearTimeout(armed);
    armed = null;
    b.textContent = label;
    try { await act(); } catch (err) { tell(problem(err)); }
  } }, label);
  return b;
}

// tell shows nodes in a dialog.
export function tell(...nodes) {
  const d = $("#message");
  $("div", d).replaceChildren(...nodes);
  if (!d.open) d.showModal();
}
