// Indexes of the query engine: their content, and a query with its results, plan and profile.
import { h, $, show, many, whole, size, fromText, call, may, plain, list, pairs, fields, isMap, facts, problem, table, sure } from "./lib.js";
import { listing } from "./systems.js";
import { words } from "./shell.js";

const per = 20; // results of a page
const shown = 200; // characters of a value

const megabytes = (v) => size(Number(v || 0) * 1048576);
const failures = (i) => Number(i.hash_indexing_failures || 0);
const attributes = (i) => list(i.attributes).map((a) => {
  const flags = list(a).length && isMap(a) ? list(fields(a).flags).map(plain) : [];
  return { ...fields(a), flags };
});

// The marks around found words. They are control characters and never shown.
const open = "\x02", close = "\x03";

// marked returns a text as nodes with the found words marked.
function marked(text) {
  return text.split(open).flatMap((part, n) => {
    if (n === 0) return [brief(part)];
    const at = part.indexOf(close);
    return at < 0 ? [brief(part)] : [h("mark", null, show(part.slice(0, at))), brief(part.slice(at + 1))];
  });
}

// brief returns the beginning of a long text, which ends between two characters.
const brief = (bytes) => (bytes.length <= shown ? bytes && show(bytes)
  : show(bytes.slice(0, shown).replace(/[\xc0-\xff][\x80-\xbf]*$/, "")) + " …");

const value = (v) => (v === null ? "–" : typeof v === "string" ? marked(v) : Array.isArray(v) ? v.map((e) => show(String(plain(e)))).join(", ") : String(plain(v)));

// tree draws an iterator of a profile with its share of the total time, and its children indented.
function tree(node, total) {
  const f = fields(node);
  const below = f["Child iterators"] ?? f["Child iterator"];
  const children = typeof below === "string" ? [] : isMap(below) ? [below] : list(below);
  const told = [["reads", f["Number of reading operations"]], ["of", f["Estimated number of matches"]]].filter(([, v]) => v !== undefined && v !== null);
  return h("li", null,
    h("div", { class: "step" }, h("b", null, f.Type), f.Term !== undefined && h("code", null, show(String(f.Term))),
      f["Query type"] && f["Query type"] !== f.Type && h("span", { class: "dim" }, f["Query type"]),
      f["Vector search mode"] && h("span", { class: "badge" }, f["Vector search mode"]),
      h("span", { class: "spacer" }),
      told.map(([k, v]) => h("span", { class: "dim" }, k + " " + whole(v))),
      f.Time !== undefined && h("span", { class: "took" }, took(f.Time)),
      f.Time !== undefined && h("progress", { class: "meter", max: Math.max(total, 1e-9), value: Math.min(Number(f.Time), total), "aria-label": "Part of the time" })),
    typeof below === "string" && h("p", { class: "dim" }, below),
    children.length > 0 && h("ul", null, children.map((c) => tree(c, total))));
}

const took = (ms) => (Number(ms) < 1 ? Math.round(Number(ms) * 1000) + " µs" : Number(ms).toFixed(1) + " ms");

// profile draws a profile: total times, the iterators, and the processing of their results.
function profile(reply) {
  return list(fields(reply).Shards).map((shard) => {
    const f = fields(shard), iterators = f["Iterators profile"];
    const stages = list(f["Result processors profile"]).map(fields);
    return h("div", { class: "panel profile" },
      facts(["Total profile time", "Parsing time", "Pipeline creation time"].map((name) => [name.replace(" profile", "").toLowerCase(),
        took(f[name])]), "inline"),
      iterators ? h("ul", { class: "plan", "aria-label": "Iterators" }, tree(iterators, Number(fields(iterators).Time))) : "no iterators",
      h("p", { class: "dim" }, "then ", stages.map((s, n) => [n ? " → " : "", s.Type])));
  });
}

const sortable = (f) => f.flags.includes("SORTABLE");

export default listing("Search", "search", [
  ["over", (i) => fields(i.index_definition).key_type],
  ["keys", (i) => list(fields(i.index_definition).prefixes).map((p) => show(plain(p)) + "*").join(" "), "mono"],
  ["fields", (i) => whole(list(i.attributes).length), "n"], ["documents", (i) => whole(i.num_docs), "n"],
  ["terms", (i) => whole(i.num_terms), "n"], ["memory", (i) => megabytes(i.total_index_memory_sz_mb), "n"],
  ["state", (i) => (i.indexing ? "indexing, " + Math.floor(100 * Number(i.percent_indexed)) + " %" : "complete")],
  ["failures", (i) => (failures(i) ? h("span", { class: "error" }, whole(failures(i))) : ""), "n"],
], "index", (box, name, item) => {
  const known = h("div"), results = h("div", { "aria-live": "polite" });
  const all = attributes(item), definition = fields(item.index_definition);
  const hash = definition.key_type === "HASH", options = list(item.index_options).map(plain);
  const marks = hash && all.some((f) => f.type === "TEXT") && !options.includes("NOHL") && !options.includes("NOOFFSETS");
  const input = (label, placeholder, extra = {}) => h("input", { "aria-label": label, placeholder, autocapitalize: "off", spellcheck: "false", ...extra });
  const query = input("Query", "query: words, @field:{tag}, @field:[0 100], *", { class: "mono", type: "search", "data-search": true, value: "*" });
  const params = input("Parameters", "parameters: name value …", { class: "mono" });
  const by = h("select", { "aria-label": "Sort" }, h("option", { value: "" }, "best first"),
    all.filter(sortable).flatMap((f) => [["ASC", "▴"], ["DESC", "▾"]].map(([way, sign]) =>
      h("option", { value: way + " " + f.attribute }, show(f.attribute) + " " + sign))));
  let at = 0, asked = 0;

  // request returns the arguments after the query.
  function request(more = []) {
    const given = words(params.value);
    if (given === null || given.length % 2) throw new Error("Parameters are names and values in turn.");
    return [fromText(query.value), ...more, "DIALECT", "2", ...(given.length ? ["PARAMS", String(given.length), ...given] : [])];
  }
  const find = () => request([...(marks ? ["HIGHLIGHT", "TAGS", open, close] : []), ...(by.value ? ["SORTBY", by.value.slice(by.value.indexOf(" ") + 1),
    by.value.slice(0, by.value.indexOf(" "))] : ["WITHSCORES"]), "LIMIT", String(at), String(per)]);

  // ask executes a command and shows the result of draw for the reply, unless a newer command was sent.
  async function ask(command, draw) {
    const mine = ++asked;
    try {
      const words = command(), begun = performance.now(), reply = await call(...words);
      if (mine === asked) results.replaceChildren(...[draw(reply, performance.now() - begun)].flat());
    } catch (err) {
      if (mine === asked) results.replaceChildren(problem(err));
    }
  }

  function hits(reply, ms) {
    const f = fields(reply), rows = list(f.results).map((r) => {
      const row = fields(r);
      return { ...row, values: row.extra_attributes ? pairs(row.extra_attributes) : [] };
    });
    const total = Number(f.total_results), warnings = list(f.warning).map(plain);
    const move = (n) => () => { at = Math.max(at + n, 0); search(); };
    return [h("div", { class: "bar" },
      h("span", { class: "dim" }, rows.length ? whole(at + 1) + "–" + whole(at + rows.length) + " of " + many(total, "document")
        : many(total, "document"), " in ", took(ms)),
      warnings.map((w) => h("span", { class: "error" }, show(w))), h("span", { class: "spacer" }),
      h("button", { "aria-label": "Page before", disabled: at === 0, onclick: move(-per) }, "‹"),
      h("button", { "aria-label": "Next page", disabled: at + per >= total, onclick: move(per) }, "›")),
    table([["key", (r) => h("a", { href: "#/keys/" + encodeURIComponent(r.id) }, show(r.id)), "mono"],
      ...(by.value ? [] : [["score", (r) => (r.score === undefined ? "" : Number(r.score).toPrecision(4)), "n"]]),
      ["fields", (r) => facts(r.values.map(([k, v]) => [show(String(k)), value(v)])), "wide"]], rows, { empty: "nothing found" })];
  }

  const search = () => ask(() => ["FT.SEARCH", name, ...find()], hits);
  const explain = () => ask(() => ["FT.EXPLAIN", name, ...request()],
    (reply) => h("div", { class: "panel" }, h("pre", null, show(plain(reply).replace(/\n$/, ""), true))));
  const measure = () => ask(() => {
    const [text, ...rest] = find();
    return ["FT.PROFILE", name, "SEARCH", "QUERY", text, ...rest];
  }, (reply, ms) => {
    const f = fields(reply);
    return [...profile(f.Profile), ...hits(f.Results, ms)];
  });

  box.append(known, h("form", { class: "panel ask", onsubmit: (e) => { e.preventDefault(); at = 0; search(); } },
    h("div", { class: "bar" }, query, params, by, h("button", { class: "primary" }, "Search"),
      h("button", { type: "button", onclick: explain }, "Explain"), h("button", { type: "button", onclick: () => { at = 0; measure(); } }, "Profile"))),
  results);
  may(["FT.DROPINDEX", name]).then(([drop]) => drop && box.append(h("div", { class: "bar" },
    sure("drop the index, keep the documents", () => call("FT.DROPINDEX", name)))));
  search();
  return {
    update(i) {
      const d = fields(i.index_definition), errors = fields(i["Index Errors"]);
      const statistics = new Map(list(i["field statistics"]).map((s) => [fields(s).attribute, fields(fields(s)["Index Errors"])]));
      const about = [["memory", megabytes(i.total_index_memory_sz_mb)], ["texts and tags", megabytes(Number(i.inverted_sz_mb) + Number(i.tag_overhead_sz_mb))],
        ["vectors", megabytes(i.vector_index_sz_mb)],
        ["documents", megabytes(Number(i.doc_table_size_mb) + Number(i.key_table_size_mb))], ["indexed in", took(i.total_indexing_time)]];
      if (d.filter) about.push(["filter", show(d.filter)]);
      if (d.default_language) about.push(["language", d.default_language]);
      if (failures(i)) about.push(["last failure", h("span", { class: "error" }, show(errors["last indexing error"]) + " (" + show(errors["last indexing error key"]) + ")")]);
      const held = $("details", known)?.open;
      known.replaceChildren(h("div", { class: "panel" }, facts(about, "inline"), h("details", { open: held }, h("summary", null, many(list(i.attributes).length, "field")),
        table([["field", (f) => show(f.attribute), "mono"], ["from", (f) => show(f.identifier), "mono"], ["type", (f) => f.type],
          ["options", (f) => described(f)], ["failures", (f) => Number(statistics.get(f.attribute)?.["indexing failures"]) || "", "n"]], attributes(i)))));
    },
  };
}, [], "search", 2);

// described returns the options of a field.
function described(f) {
  const shownElsewhere = ["identifier", "attribute", "type", "flags"];
  return [...Object.entries(f).filter(([k]) => !shownElsewhere.includes(k)).map(([k, v]) => k.toLowerCase().replaceAll("_", " ") + " " + show(String(plain(v)))),
    ...f.flags.map((w) => w.toLowerCase())].join(", ");
}
