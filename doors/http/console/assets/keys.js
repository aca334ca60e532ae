// Keys as a tree by prefix. A walk over them is a series of requests with a bounded amount of work.
import { $, h, show, count, whole, size, page, post, run, plain, isError, problem, unshow } from "./lib.js";
import { browse } from "./browser.js";

const atOnce = 200; // names that are shown at first
const most = 20000; // limit of the names of a branch

const natural = new Intl.Collator("en", { numeric: true }).compare;

const types = ["string", "hash", "list", "set", "zset", "stream", "ReJSON-RL", "TSDB-TYPE", "vectorset", "array", "MBbloom--",
  "MBbloomCF", "CMSk-TYPE", "TopK-TYPE", "TDIS-TYPE"];

export const typeNames = { "ReJSON-RL": "json", "TSDB-TYPE": "time series", "MBbloom--": "bloom", "MBbloomCF": "cuckoo",
  "CMSk-TYPE": "count-min", "TopK-TYPE": "top-k", "TDIS-TYPE": "t-digest", vectorset: "vectors" };
export const typeName = (t) => typeNames[t] || t;

export default {
  title: "Keys",
  mount(root, param, { go }) {
    const filter = h("input", { type: "search", placeholder: "pattern (user:*), or a key and Enter", "aria-label": "Pattern of keys",
      "data-search": true, spellcheck: "false" });
    const type = h("select", { "aria-label": "Type" }, h("option", { value: "" }, "all types"),
      types.map((t) => h("option", { value: t }, typeName(t))));
    const separator = h("select", { "aria-label": "Separator" }, [":", ".", "/", "|", "-", "_"].map((s) => h("option", { value: s }, s)),
      h("option", { value: "" }, "flat"));
    const told = h("span", { class: "dim" }), again = h("button", { title: "Walk over the keys again" }, "Refresh");
    const tree = h("div", { class: "tree panel", role: "tree", "aria-label": "Keys" });
    const right = h("section", { "aria-live": "polite" });
    root.append(h("div", { class: "bar" }, filter, type, separator, again, told),
      h("div", { class: "split" }, h("section", null, tree), right));
    let walking = new AbortController(), chosen = "", shown = null;

    function restart() {
      walking.abort();
      walking = new AbortController();
      tree.replaceChildren();
      const match = filter.value.trim();
      const at = { match: match ? unshow(match) : "", type: type.value, separator: separator.value, signal: walking.signal };
      branch(tree, "", at, (text) => { told.textContent = text; });
    }

    // branch fills a list with the keys and groups below a prefix.
    async function branch(into, prefix, at, tell) {
      const ul = h("ul", { role: "group" }), bar = h("progress", { class: "progress", max: 1, value: 0, "aria-label": "Walk" });
      into.append(bar, ul);
      const groups = new Map(), keys = new Set();
      let cursor = "", scanned = 0, more = 0, limit = atOnce, drawn = 0;
      const sizes = (await run([["DBSIZE"]]).catch(() => [0]))[0];
      const total = typeof sizes === "number" ? sizes : 0;
      const draw = () => {
        drawn = performance.now();
        const names = [...groups].sort((a, b) => b[1].keys - a[1].keys || natural(a[0], b[0]));
        const leaves = [...keys].sort(natural);
        const open = new Map([...ul.children].filter((li) => li.opened).map((li) => [li.dataset.name, li]));
        const focused = document.activeElement?.closest?.(".tree li")?.dataset.name;
        ul.replaceChildren(...names.slice(0, limit).map(([name, g]) => {
          const li = open.get(name) || group(prefix, name, at);
          li.count(g);
          return li;
        }), ...leaves.slice(0, Math.max(limit - names.length, 0)).map((name) => leaf(prefix + name, name)));
        const rest = names.length + leaves.length - ul.children.length;
        if (rest > 0) ul.append(h("li", null, h("button", { class: "node dim", onclick: () => { limit += 1000; draw(); weigh(ul); } },
          whole(rest) + " more …")));
        if (more) ul.append(h("li", { class: "node dim" }, whole(more) + " keys of too many names to list: narrow it with a pattern"));
        if (focused && !tree.contains(document.activeElement)) {
          [...ul.children].find((li) => li.dataset.name === focused)?.firstChild.focus();
        }
      };
      try {
        do {
          const step = await post("tree", { db: page.db, prefix, separator: at.separator, match: at.match, type: at.type, cursor },
            at.signal);
          cursor = step.cursor;
          scanned += step.scanned;
          more += step.more;
          for (const k of step.keys) if (keys.size < most) keys.add(k); else more++;
          for (const [name, g] of Object.entries(step.groups)) {
            let sum = groups.get(name);
            if (!sum && groups.size >= most) { more += g.keys; continue; }
            if (!sum) groups.set(name, (sum = { keys: 0, weighed: 0, bytes: 0, types: {} }));
            for (const f of ["keys", "weighed", "bytes"]) sum[f] += g[f];
            for (const [t, n] of Object.entries(g.types)) sum.types[t] = (sum.types[t] || 0) + n;
          }
          bar.value = total ? Math.min(scanned / total, 1) : 1;
          let found = keys.size + more;
          for (const g of groups.values()) found += g.keys;
          tell?.(whole(found) + (cursor === "0" ? " of " + whole(total) + " keys"
            : " keys, walked over " + Math.round(100 * bar.value) + " %"));
          if (performance.now() - drawn > 300) draw();
        } while (cursor !== "0" && ul.isConnected);
      } catch (err) {
        if (err.name !== "AbortError") ul.before(problem(err));
      }
      bar.remove();
      if (!at.signal.aborted) {
        draw();
        if (!ul.children.length) ul.append(h("li", { class: "node dim" }, "no keys"));
        weigh(ul);
      }
    }

    function group(prefix, name, at) {
      const more = h("span", { class: "more" }), mark = h("span", { class: "more", "aria-hidden": "true" }, "▸");
      const li = h("li", { role: "treeitem", "data-name": name, "aria-expanded": "false" });
      const b = h("button", { class: "node", onclick: () => {
        li.opened = !li.opened;
        mark.textContent = li.opened ? "▾" : "▸";
        li.setAttribute("aria-expanded", String(li.opened));
        if (li.opened) branch(li, prefix + name, { ...at });
        else li.replaceChildren(b);
      } }, mark, h("span", { class: "name key" }, show(name)), more);
      li.append(b);
      const depth = prefix.split(at.separator).length - 1;
      b.classList.add("depth" + Math.min(depth, 8));
      li.count = (g) => {
        const kinds = Object.entries(g.types).sort((a, c) => c[1] - a[1]).slice(0, 2).map(([t]) => typeName(t)).join(", ");
        const memory = g.weighed ? " · " + (g.weighed < g.keys ? "≈ " : "") + size((g.bytes / g.weighed) * g.keys) : "";
        more.textContent = (kinds ? kinds + " · " : "") + count(g.keys) + memory;
      };
      return li;
    }

    function leaf(key, name) {
      const depth = separator.value ? key.slice(0, key.length - name.length).split(separator.value).length - 1 : 0;
      const b = h("button", { class: "node depth" + Math.min(depth, 8) + (key === chosen ? " chosen" : ""), "data-key": key,
        onclick: () => go("keys", key) },
        h("span", { class: "name key" }, name === "" ? '""' : show(name)), h("span", { class: "badge", hidden: true }),
          h("span", { class: "more" }));
      return h("li", { role: "treeitem", "data-name": name }, b);
    }

    // weigh shows types and sizes of the keys in a list.
    async function weigh(ul) {
      const nodes = [...ul.querySelectorAll(":scope > li > [data-key]")].filter((b) => !b.weighed);
      for (let i = 0; i < nodes.length; i += 250) {
        const some = nodes.slice(i, i + 250);
        const replies = await run(some.flatMap((b) => [["TYPE", b.dataset.key], ["MEMORY", "USAGE", b.dataset.key]])).catch(() => []);
        some.forEach((b, n) => {
          const [kind, memory] = [replies[2 * n], replies[2 * n + 1]];
          b.weighed = true;
          if (kind && !isError(kind)) {
            $(".badge", b).textContent = typeName(plain(kind));
            $(".badge", b).hidden = false;
          }
          if (typeof memory === "number") $(".more", b).textContent = size(memory);
        });
      }
    }

    async function choose(key) {
      chosen = key;
      for (const b of tree.querySelectorAll("[data-key]")) b.classList.toggle("chosen", b.dataset.key === key);
      shown?.end?.();
      shown = null;
      right.replaceChildren();
      if (key === "") return right.append(h("p", { class: "dim panel" }, "Choose a key, or write one and press Enter."));
      const mine = (shown = { end: null });
      const box = h("div");
      right.append(box);
      const view = await browse(box, key, () => { choose(""); go("keys"); restart(); });
      if (shown === mine) shown = view;
      else view?.end?.();
      if (matchMedia("(max-width: 46rem)").matches) right.scrollIntoView({ block: "start" });
    }

    // The arrows go through the tree.
    tree.addEventListener("keydown", (e) => {
      const at = e.target.closest(".node");
      if (!at) return;
      const nodes = [...tree.querySelectorAll("button.node")], i = nodes.indexOf(at), li = at.parentElement;
      const to = { ArrowDown: nodes[i + 1], ArrowUp: nodes[i - 1],
        ArrowLeft: li.opened ? null : li.parentElement.closest("li")?.firstChild }[e.key];
      if (to) to.focus();
      else if ((e.key === "ArrowRight" && li.count && !li.opened) || (e.key === "ArrowLeft" && li.opened)) at.click();
      if (e.key.startsWith("Arrow")) e.preventDefault();
    });
    filter.addEventListener("keydown", (e) => {
      if (e.key !== "Enter") return;
      const text = filter.value.trim();
      if (text && !/[*?[]/.test(text)) go("keys", unshow(text));
      else restart();
    });
    filter.addEventListener("search", () => { if (!filter.value) restart(); });
    type.addEventListener("change", restart);
    separator.addEventListener("change", restart);
    again.addEventListener("click", restart);
    restart();
    choose(param);
    return { moved: choose, end: () => { walking.abort(); shown?.end?.(); } };
  },
};
