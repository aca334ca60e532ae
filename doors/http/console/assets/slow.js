// The slow log and the latency events.
import { h, show, micros, clock, whole, table, swap, sure, call, may, list, plain, pairs, isError, problem } from "./lib.js";
import { plot } from "./plot.js";

export default {
  title: "Slow log",
  topics: ["slow"],
  mount(root) {
    let log = table([], []), events = table([], []), chosen = "", figure = null, reset = false;
    const note = h("span", { class: "dim" }), graph = h("div"), bar = h("div", { class: "bar" }, h("h2", null, "Slow log"), note,
      h("span", { class: "spacer" }));
    root.append(bar, log, h("h2", null, "Latency events"), events, graph);
    may(["SLOWLOG", "RESET"]).then(([m]) => m && bar.append(sure("empty the slow log", () => call("SLOWLOG", "RESET"))));
    async function history(name) {
      chosen = name;
      figure?.end();
      figure = plot(name, [["ms", (v) => v + " ms"]]);
      graph.replaceChildren(figure);
      const samples = pairs(await call("LATENCY", "HISTORY", name));
      figure.set([samples.map(([t]) => t), samples.map(([, v]) => plain(v))]);
    }
    return {
      on: { slow(sample) {
        if (isError(sample)) return note.replaceChildren(problem(sample));
        const limit = isError(sample.above) ? null : Number(plain(list(sample.above)[1]));
        note.textContent = limit === null ? "" : limit < 0 ? "switched off" : "commands of " + micros(limit) + " or more";
        log = swap(log, isError(sample.slowlog) ? problem(sample.slowlog) : table([
          ["when", (e) => clock(e[1] * 1000)], ["took", (e) => micros(e[2]), "n"],
            ["command", (e) => e[3].map((w) => show(w)).join(" "), "wide mono"],
          ["client", (e) => show(e[4])], ["name", (e) => show(e[5])],
        ], sample.slowlog, { empty: "no command was slow" }));
        events = swap(events, isError(sample.events) ? problem(sample.events) : table([
          ["event", (e) => show(e[0])], ["last", (e) => clock(e[1] * 1000)], ["took", (e) => whole(e[2]) + " ms", "n"],
            ["at most", (e) => whole(e[3]) + " ms", "n"],
        ], list(sample.events),
          { pick: (e) => history(e[0]), key: (e) => e[0], chosen,
          empty: "none (latency-monitor-threshold says from when on they are noted)" }));
      } },
      end: () => figure?.end(),
    };
  },
};
