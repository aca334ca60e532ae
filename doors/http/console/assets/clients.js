// Clients and their activity. The server sorts, filters and pages, so ten thousand clients cost no more than a page.
import { h, show, size, whole, duration, table, swap, sure, call, may, isError, problem, tell, facts } from "./lib.js";

const columns = [
  ["id", "id", "n"], ["address", "addr"], ["name", "name"], ["user", "user"], ["command", "cmd"], ["age", "age", "n"],
    ["idle", "idle", "n"],
  ["db", "db", "n"], ["flags", "flags"], ["memory", "tot-mem", "n"], ["output", "omem", "n"], ["library", "lib-name"],
];
const page = 200;

function parse(line) {
  const out = Object.create(null);
  for (const part of line.split(" ")) {
    const at = part.indexOf("=");
    out[part.slice(0, at)] = part.slice(at + 1);
  }
  return out;
}

export default {
  title: "Clients",
  topics: ["clients"],
  mount(root, param, { listen }) {
    let sort = "-age", offset = 0, kill = false;
    const filter = h("input", { type: "search", placeholder: "filter: address, user=…, cmd=…, name=…", "aria-label": "Filter",
      "data-search": true, spellcheck: "false" });
    const told = h("span", { class: "dim" }), by = h("p", { class: "chips" });
    const back = h("button", { onclick: () => move(-page) }, "‹"), on = h("button", { onclick: () => move(page) }, "›");
    let rows = table([], []);
    root.append(h("div", { class: "bar" }, filter, back, on, told), by, rows);
    may(["CLIENT", "KILL", "ID", "1"]).then(([m]) => { kill = m; });
    let typed = null;
    filter.addEventListener("input", () => {
      clearTimeout(typed);
      typed = setTimeout(() => { offset = 0; listen(); }, 250);
    });
    function move(n) {
      offset = Math.max(offset + n, 0);
      listen();
    }
    const cell = { idle: (v) => duration(Number(v)), age: (v) => duration(Number(v)), "tot-mem": size,
      omem: (v) => (v === "0" ? "" : size(v)), cmd: (v) => v.replace("|", " ") };
    function update(sample) {
      if (isError(sample)) return rows = swap(rows, problem(sample));
      back.disabled = sample.offset === 0;
      on.disabled = sample.offset + page >= sample.found;
      offset = sample.offset;
      told.textContent = sample.found ? whole(sample.offset + 1) + "–" + whole(sample.offset + sample.page.length) +
        " of " + whole(sample.found) + (sample.found < sample.total ? " (" + whole(sample.total) + " clients)" : "") : "none of " + whole(sample.total);
      by.replaceChildren(...Object.entries(sample.commands).sort((a, b) => b[1] - a[1]).slice(0, 12).map(([cmd, n]) =>
        h("button", { class: "chip", onclick: () => { filter.value = "cmd=" + cmd; offset = 0; listen(); } }, show(cmd.replace("|", " ")),
          " ", h("b", null, whole(n)))));
      const head = ([title, name, kind]) => [h("button", { class: "sort", "aria-label": "Sort by " + title, onclick: () => {
        sort = sort === "-" + name ? name : "-" + name;
        listen();
      } }, title, sort === name ? " ▴" : sort === "-" + name ? " ▾" : ""), (c) => (cell[name] || show)(c[name] || ""), kind];
      rows = swap(rows,
        table([...columns.map(head), ...(kill ? [["", (c) => sure("kill", () => call("CLIENT", "KILL", "ID", c.id))]] : [])],
        sample.page.map(parse),
          { pick: (c) => tell(h("h2", null, "Client " + c.id), facts(Object.entries(c).map(([k, v]) => [k, show(v)]))),
          empty: "no such client" }));
    }
    return { on: { clients: update }, query: () => ({ sort, offset, filter: filter.value }) };
  },
};
