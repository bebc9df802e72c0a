// All collectives of a step, those of layers that are alike as one row; the search looks into everything that a row says.
import { computed } from "@preact/signals";
import { Axes } from "./axes";
import type { Row } from "./data";
import { line } from "./model";
import { order, search, selection, step, text, type Order } from "./state";
import { Numbers, tacticTexts } from "./inspector";
import { bytes, count, exact } from "./units";

const times = (row: Row) => row.times * row.members.length;

function haystack(row: Row): string {
  const [place, name, code] = line(row.line) ?? ["", "", ""];
  const members = row.members.map(([member]) => text(member)).join(" ");
  const causes = tacticTexts(row.tactics).map(([number, tactic]) => `${number || ""} ${tactic}`);
  return [row.kind, row.axes.join(" "), text(row.value), members, text(row.use), row.direction, row.where, place, name, code, ...causes]
    .join(" ")
    .toLowerCase();
}

const haystacks = computed(() => step.value.sent.map(haystack));

const found = computed(() => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = step.value.sent
    .map((row, index) => ({ row, index }))
    .filter(({ index }) => words.every((word) => haystacks.value[index].includes(word)));
  if (order.value === "bytes") rows.sort((a, b) => b.row.bytes - a.row.bytes);
  if (order.value === "times") rows.sort((a, b) => times(b.row) - times(a.row));
  return rows;
});

export function Collectives() {
  const rows = found.value;
  const most = Math.max(1, ...rows.map(({ row }) => row.bytes));
  const sum = rows.reduce((total, { row }) => total + row.bytes, 0);
  const runs = rows.reduce((total, { row }) => total + times(row), 0);
  return (
    <div class="sheet">
      <div class="tools">
        <input
          type="search"
          placeholder="Search values, kinds, axes, ops, source lines, tactics"
          aria-label="Search the collectives"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
        <span class="faint" role="status">
          {exact(runs)} collectives in {count(rows.length)} rows, {bytes(sum)} by a device in a call
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">{step.value.sent.length ? "No collective matches." : "No collective runs here: each device has what it computes with."}</p>
      ) : (
        <div class="scroll">
          <table class="list">
            <thead>
              <tr>
                <Head by="program">value</Head>
                <th>collective</th>
                <th>over</th>
                <th>when</th>
                <Head by="times">times</Head>
                <Head by="bytes">received</Head>
                <th>for</th>
                <th>at</th>
                <th class="right">tactic</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ row, index }) => (
                <Line key={index} row={row} index={index} most={most} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function Head({ by, children }: { by: Order; children: string }) {
  const on = order.value === by;
  return (
    <th class={by === "program" ? "" : "right"} aria-sort={on ? (by === "program" ? "ascending" : "descending") : "none"}>
      <button type="button" class={`sort${on ? " on" : ""}`} title={by === "program" ? "In program order" : `The most ${by} first`} onClick={() => (order.value = by)}>
        {children}
        {on ? (by === "program" ? " ↑" : " ↓") : ""}
      </button>
    </th>
  );
}

function Line({ row, index, most }: { row: Row; index: number; most: number }) {
  const chosen = selection.value?.what === "row" && selection.value.row === index;
  const found = line(row.line);
  return (
    <tr class={chosen ? "chosen" : ""} data-row={index} tabIndex={0} onClick={choose} onKeyDown={(event) => event.key === "Enter" && choose()}>
      <td class="mono">
        {text(row.value)}
        {row.members.length > 1 && <span class="times"> × {count(row.members.length)}</span>}
      </td>
      <td>{row.kind}</td>
      <td>
        <Axes axes={row.axes} />
      </td>
      <td class="faint">{[row.direction, row.where, row.times > 1 && `${exact(row.times)} trips`].filter(Boolean).join(", ")}</td>
      <td class="right">{exact(times(row))}</td>
      <td class="right" title={`${exact(row.bytes)} bytes by a device in a call`}>
        {bytes(row.bytes)}
        <i class="bar" style={{ width: `${(100 * row.bytes) / most}%` }} />
      </td>
      <td class="mono">{text(row.use)}</td>
      <td class="mono nowrap" title={found?.[2]}>
        {found && row.made && <span class="faint">made at </span>}
        {found?.[0]}
      </td>
      <td class="right nowrap">
        <Numbers of={row.tactics} />
      </td>
    </tr>
  );

  function choose() {
    selection.value = { what: "row", row: index };
  }
}
