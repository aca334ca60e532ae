// The server's group: its members and their state, changes of the members, the shards of the cluster, and slots that move between
// them.
import { h, show, fromText, whole, many, size, duration, clock, call, may, plain, list, fields, isError, problem, facts, table, swap, sure } from "./lib.js";

// members returns the members of a status with their roles.
const members = (status) => list(status.members).map(fields).map((m) => ({ ...m,
  role: m.addr === status.leader ? "leader" : ({ voter: "follower", waiting: "not added" })[m.role] || m.role }));

// ranges returns the first and last slots in turn as text.
const ranges = (ends) => ends.reduce((all, first, i) => (i % 2 ? all : [...all, first === ends[i + 1] ? first : first + "–" + ends[i + 1]]), [])
  .join(", ") || "none";

// rebalancing returns the fields of INFO about cluster-rebalance, without their common prefix.
const rebalancing = (info) => Object.fromEntries([...plain(info).matchAll(/^cluster_rebalance(?:_(\w+))?:(.*?)\r?$/gm)].map(([, k, v]) => [k || "is", v]));

// units of cluster-rebalance-by; memory is shown as a size.
const units = { slots: "slot", keys: "key", time: "microsecond" };

const migrationsShown = 10;

export default {
  title: "Group",
  topics: ["group"],
  mount(root) {
    const about = h("div"), shards = h("div"), moves = h("div"), tasks = h("div"), out = h("output", { role: "status" });
    const addr = h("input", { "aria-label": "raft-addr", placeholder: "raft-addr: host:port", autocapitalize: "off", spellcheck: "false", class: "mono" });
    const later = h("input", { type: "checkbox" }), learner = h("input", { type: "checkbox" });
    let rows = table([], []), allowed = [false, false, false, false];
    const buttons = new Map(); // by action and address: a button keeps its state between samples

    // change executes a command that changes the group.
    async function change(done, ...words) {
      out.textContent = "";
      await call(...words);
      out.textContent = done;
    }
    function button(label, m, act) {
      const key = label + " " + m.addr;
      if (!buttons.has(key)) buttons.set(key, h("span", { "data-server": show(m.addr) }, sure(label, act)));
      return buttons.get(key);
    }
    const actions = (m) => [
      allowed[0] && m.role === "follower" && button("make it lead", m, () => change(show(m.addr) + " gets the lead.", "RAFT.TRANSFER", m.addr)),
      allowed[1] && button("remove", m, () => change(show(m.addr) + " is removed.", "RAFT.REMOVE", m.addr))];
    const add = sure("add the server", () => {
      const name = fromText(addr.value.trim());
      return change(show(name) + (learner.checked ? " is a learner." : " is added, and votes once it has all data."), "RAFT.ADD", name,
        ...(learner.checked ? ["LEARNER"] : []), ...(later.checked ? [] : ["ONLINE"]));
    });
    const form = h("div", { class: "panel", hidden: true }, h("div", { class: "bar" }, addr, h("label", null, later, " it starts later"), h("label", null, learner, " it never votes"), add));
    root.append(about, h("h2", null, "Members"), rows, form, out, shards, moves, tasks);
    may(["RAFT.TRANSFER"], ["RAFT.REMOVE", "127.0.0.1:1"], ["RAFT.ADD", "127.0.0.1:1"], ["CLUSTER", "MIGRATION", "STATUS", "ALL"]).then((may) => {
      allowed = may;
      form.hidden = !may[2];
    });

    function update(sample) {
      if (isError(sample) || isError(sample.status)) return about.replaceChildren(problem(isError(sample) ? sample : sample.status));
      const status = fields(sample.status), all = members(status);
      const voters = all.filter((m) => m.voter);
      about.replaceChildren(h("div", { class: "panel" }, facts([["this server", show(status.addr)], ["state", show(status.state)],
        ["leader", status.leader ? show(status.leader) : h("span", { class: "error" }, "none")], ["term", whole(status.term)],
        ["committed", whole(status["commit-index"])], ["voters online", whole(voters.filter((m) => m.online).length) + " of " + whole(voters.length)],
        ...(status.problem ? [["problem", h("span", { class: "error" }, show(status.problem))]] : [])], "inline")));
      const focused = document.activeElement;
      rows = swap(rows, table([["raft-addr", (m) => show(m.addr), "mono"], ["for clients", (m) => show(m.client), "mono"], ["role", (m) => m.role],
        ...(all.some((m) => m.zone) ? [["zone", (m) => show(m.zone)]] : []), ["online", (m) => (m.online ? "yes" : h("span", { class: "error" }, "no"))], ["lag", (m) => whole(m.lag), "n"],
        ["log", (m) => (m["log-bytes"] ? size(m["log-bytes"]) : "–"), "n"], ...(allowed[0] || allowed[1] ? [["", actions]] : [])], all));
      if (rows.contains(focused)) focused.focus({ preventScroll: true });
      if (sample.shards !== undefined) drawShards(sample.shards);
      if (sample.cluster !== undefined && !isError(sample.cluster)) drawRebalancing(rebalancing(sample.cluster));
      if (sample.shards !== undefined && allowed[3]) call("CLUSTER", "MIGRATION", "STATUS", "ALL").then((reply) => drawTasks(reply, list(sample.shards)), () => {});
    }

    // drawRebalancing shows whether this server's shard takes slots by itself, and what it has taken.
    function drawRebalancing(r) {
      const amount = (n) => (r.by === "memory" ? size(n) : many(n, units[r.by] || r.by));
      const seen = r.is === "auto" && r.state !== "following" && Number(r.part) > 0;
      const batch = many(r.last_slots, "slot") + " from " + show(r.last_from || "another shard");
      moves.replaceChildren(h("h2", null, "Rebalancing"), h("div", { class: "panel" }, facts([["cluster-rebalance", r.is], ["by", r.by],
        ["state", r.state === "failing" ? h("span", { class: "error" }, show(r.problem)) : r.state],
        ...(seen ? [["this shard has", amount(r.load)], ["its part", amount(r.part)]] : []),
        ...(Number(r.left_out) ? [["without an answer", h("span", { class: "error" }, many(r.left_out, "shard"))]] : []),
        ...(r.state === "moving" ? [["moving", batch]] : []), ["taken since the start", many(r.slots, "slot") + " in " + many(r.batches, "batch", "batches")],
        ...(Number(r.last_time) ? [["last batch", (r.state === "moving" ? "" : batch + ", ") + clock(r.last_time * 1000)]] : [])], "inline")));
    }

    // drawTasks shows the slots that move to or from this server's shard, and the last that have.
    function drawTasks(reply, shards) {
      const names = Object.fromEntries(shards.map(fields).flatMap((s) => list(s.nodes).map(fields)).map((n) => [n.id, show(n.ip + ":" + (n.port || n["tls-port"]))]));
      const all = list(reply).map(fields);
      const running = all.filter((t) => !t.end_time), ended = all.filter((t) => t.end_time);
      tasks.replaceChildren(h("h2", null, "Slots that move"), table([["slots", (t) => show(t.slots), "wide"], ["from", (t) => names[t.source] || show(t.source), "mono"],
        ["to", (t) => names[t.dest] || show(t.dest), "mono"], ["state", (t) => (t.last_error ? h("span", { class: "error" }, show(t.state + ": " + t.last_error)) : show(t.state))],
        ["keys", (t) => whole(t.keys), "n"], ["began", (t) => clock(t.start_time)],
        ["took", (t) => duration(((t.end_time || Date.now()) - t.start_time) / 1000), "n"]], [...running, ...ended.slice(0, migrationsShown)], { empty: "none has moved" }));
    }

    function drawShards(reply) {
      shards.replaceChildren(h("h2", null, "Shards"), isError(reply) ? problem(reply) : table([
        ["slots", (s) => ranges(s.slots), "wide"], ["number", (s) => whole(s.slots.reduce((n, end, i) => n + (i % 2 ? end + 1 : -end), 0)), "n"],
        ["leader", (s) => s.leader || h("span", { class: "error" }, "none"), "mono"],
        ["online", (s) => whole(s.nodes.filter((n) => n.health === "online").length) + " of " + whole(s.nodes.length), "n"],
      ], list(reply).map(fields).map((s) => {
        const nodes = list(s.nodes).map(fields), leader = nodes.find((n) => n.role === "master");
        return { slots: list(s.slots).map(plain), nodes, leader: leader && show(leader.ip + ":" + (leader.port || leader["tls-port"])) };
      })));
    }
    return { on: { group: update } };
  },
};
