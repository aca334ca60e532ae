// A command line: completion and hints from COMMAND DOCS, replies as in redis-cli, and a history until the page is
// closed.
import { h, show, toText, quote, unquote, fromText, page, run, call, plain, list, pairs, fields, isError, isMap, Refused } from "./lib.js";

const said = []; // commands and replies, kept while another view is open
const asked = []; // lines
let docs = null;

// words splits a line as redis-cli does; null if quotes are not closed.
export function words(line) {
  const out = [];
  const re = /\s*(?:"((?:[^"\\]|\\[^])*)"(?=\s|$)|'((?:[^'\\]|\\[^])*)'(?=\s|$)|([^\s"'][^\s]*))/y;
  while (re.lastIndex < line.length && line.slice(re.lastIndex).trim()) {
    const m = re.exec(line);
    if (!m) return null;
    out.push(m[1] !== undefined ? unquote(m[1]) : m[2] !== undefined ? fromText(m[2].replace(/\\'/g, "'")) : fromText(m[3]));
  }
  return out;
}

// render returns a reply as redis-cli shows it.
export function render(r, indent = "") {
  if (r === null) return "(nil)";
  if (typeof r === "number") return "(integer) " + r;
  if (typeof r === "boolean") return "(" + r + ")";
  if (typeof r === "string") return quote(r);
  if (isError(r)) return "(error) " + show(r.error);
  if ("status" in r) return show(r.status);
  if ("double" in r) return "(double) " + r.double;
  if ("big" in r) return "(integer) " + r.big;
  if ("text" in r) return toText(r.text.replaceAll("\r\n", "\n").replace(/\n$/, "")) ?? quote(r.text);
  const map = isMap(r), elements = map ? pairs(r) : list(r);
  if (!elements.length) return map ? "(empty hash)" : r.set ? "(empty set)" : "(empty array)";
  const width = String(elements.length).length;
  return elements.map((e, n) => {
    const mark = String(n + 1).padStart(width) + (map ? "# " : r.set ? "~ " : ") ");
    const inner = indent + " ".repeat(mark.length);
    const text = map ? (typeof e[0] === "string" ? quote(e[0]) : String(e[0])) + " => " + deeper(e[1], inner) : render(e, inner);
    return (n ? indent : "") + mark + text;
  }).join("\n");
}

const deeper = (r, indent) => (r && typeof r === "object" && list(r).length ? "\n" + indent : "") + render(r, indent);

// learn reads the list of commands, once.
async function learn() {
  if (docs) return;
  docs = new Map();
  const add = (name, doc) => {
    const d = fields(doc);
    docs.set(name, { summary: d.summary, since: d.since, group: d.group, syntax: syntax(list(d.arguments)), inner: !!d.subcommands });
    for (const [sub, of] of pairs(d.subcommands)) add(sub.replace("|", " "), of);
  };
  for (const [name, doc] of pairs(await call("COMMAND", "DOCS"))) add(name, doc);
}

// syntax returns the syntax of arguments.
function syntax(args) {
  return args.map((a) => {
    const f = fields(a), flags = list(f.flags).map(plain), inner = list(f.arguments);
    let text = f.type === "pure-token" ? ""
      : f.type === "oneof" ? inner.map((i) => syntax([i])).join(" | ")
      : f.type === "block" ? syntax(inner)
      : f.display_text || f.name;
    if (f.type === "oneof" && !flags.includes("optional")) text = "<" + text + ">";
    const token = f.token ? f.token + (text ? " " : "") : "";
    if (flags.includes("multiple")) text = `${token}${text} [${flags.includes("multiple_token") ? token : ""}${text} ...]`;
    else text = token + text;
    return flags.includes("optional") ? "[" + text + "]" : text;
  }).join(" ");
}

export default {
  title: "Command line",
  mount(root) {
    const out = h("div", { class: "out mono", role: "log", "aria-live": "polite", tabindex: "0" });
    const input = h("input",
      { class: "mono", "aria-label": "Command",
      placeholder: "a command; Tab completes, ↑ goes back, Ctrl-C gives up waiting, Ctrl-L clears", "data-search": true,
      autocomplete: "off", autocapitalize: "off", spellcheck: "false", role: "combobox", "aria-expanded": "false",
        "aria-controls": "complete" });
    const offers = h("ul", { class: "complete", id: "complete", role: "listbox", hidden: true }), hint = h("div", { class: "hint" });
    root.append(out, h("div", { class: "prompt" }, offers, input), hint);
    let at = asked.length, draft = "", waiting = null, chosen = -1;
    for (const node of said) out.append(node);
    out.scrollTop = out.scrollHeight;
    learn().then(offer).catch(() => { hint.textContent = "This user may not ask for the list of commands: there is no completion."; });
    input.focus();

    function print(kind, text) {
      const pre = h("pre", { class: kind }, text);
      said.push(pre);
      if (said.length > 1000) said.shift().remove();
      out.append(pre);
      out.scrollTop = out.scrollHeight;
    }

    async function submit() {
      const line = input.value.trim();
      if (!line || waiting) return;
      hide();
      if (asked.at(-1) !== line) asked.push(line);
      at = asked.length;
      input.value = "";
      help();
      print("asked", "db" + page.db + "> " + line);
      const command = words(line);
      if (!command) return print("error", "Invalid argument(s)");
      if (/^select$/i.test(command[0]) && /^\d+$/.test(command[1] || "") && command.length === 2) {
        const [reply] = await run([["PING"]]).catch((err) => [{ error: fromText(err.message) }]);
        if (isError(reply) && !reply.error.startsWith("NOPERM")) return print("error", render(reply));
        return page.choose(Number(command[1]));
      }
      waiting = new AbortController();
      try {
        const [reply] = await run([command], waiting.signal);
        print(isError(reply) ? "error" : "", render(reply));
      } catch (err) {
        print("error", err.name === "AbortError" ? "given up" : err instanceof Refused ? "(error) " + err.message : String(err));
      }
      waiting = null;
    }

    // known returns the command that a line begins with, of one or two words.
    function known(line) {
      const [a = "", b = ""] = line.trimStart().toLowerCase().split(/\s+/);
      return docs?.get(a + " " + b) ? a + " " + b : docs?.get(a) ? a : null;
    }

    function help() {
      const name = known(input.value);
      hint.replaceChildren();
      if (!name) return;
      const d = docs.get(name);
      hint.append(h("b", null, name.toUpperCase()), " " + (d.syntax || ""), h("br"),
        (d.summary || "") + (d.since ? " · since " + d.since : ""));
    }

    function offer() {
      const typed = input.value.trimStart().toLowerCase();
      const fits = (n) => n.startsWith(typed) && n !== typed && (typed.includes(" ") || !n.includes(" "));
      const found = typed && docs ? [...docs.keys()].filter(fits).sort().slice(0, 40) : [];
      chosen = -1;
      offers.replaceChildren(...found.map((n) => h("li",
        { role: "option", "aria-selected": "false", onmousedown: (e) => { e.preventDefault(); take(n); } }, n.toUpperCase(),
        h("small", null, docs.get(n).summary || ""))));
      offers.hidden = !found.length;
      input.setAttribute("aria-expanded", String(!offers.hidden));
      help();
    }

    function hide() {
      offers.hidden = true;
      input.setAttribute("aria-expanded", "false");
    }

    function take(name) {
      input.value = name.toUpperCase() + " ";
      hide();
      if (docs.get(name).inner) offer();
      help();
      input.focus();
    }

    function mark(n) {
      const all = [...offers.children];
      chosen = (n + all.length) % all.length;
      all.forEach((li, i) => li.setAttribute("aria-selected", String(i === chosen)));
      all[chosen].scrollIntoView({ block: "nearest" });
    }

    input.addEventListener("input", offer);
    input.addEventListener("blur", hide);
    input.addEventListener("keydown", (e) => {
      const offered = !offers.hidden && [...docs.keys()].length > 0;
      const name = () => offers.children[Math.max(chosen, 0)].firstChild.data.toLowerCase();
      const act = {
        Enter: () => (offered && chosen >= 0 ? take(name()) : submit()),
        Tab: offered ? () => take(name()) : null,
        Escape: offered ? () => { hide(); e.stopPropagation(); } : null,
        ArrowDown: () => (offered ? mark(chosen + 1) : recall(1)),
        ArrowUp: () => (offered && chosen >= 0 ? mark(chosen - 1) : recall(-1)),
        l: e.ctrlKey ? () => { said.length = 0; out.replaceChildren(); } : null,
        c: e.ctrlKey && waiting ? () => waiting.abort() : null,
      }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    });

    function recall(step) {
      if (at === asked.length) draft = input.value;
      at = Math.min(Math.max(at + step, 0), asked.length);
      input.value = at === asked.length ? draft : asked[at];
      hide();
      help();
    }
    return { end: () => waiting?.abort() };
  },
};
