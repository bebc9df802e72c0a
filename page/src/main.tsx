import { render } from "preact";
import { Collectives } from "./collectives";
import { Graph } from "./graph";
import { Tactics, Theme, Title } from "./head";
import { Inspector } from "./inspector";
import { chosen } from "./flows";
import { Kernels } from "./kernels";
import { Layouts } from "./layouts";
import { Memory } from "./memory";
import { go } from "./moves";
import { OpenEnds } from "./open";
import { address, asked, at, data, selection, step, tab, TABS, type Tab } from "./state";
import { Tree } from "./tree";
import { count } from "./units";
import { Waits } from "./waits";

function numberOf(which: Tab): string {
  const { open, sent } = step.value;
  if (which === "Collectives") return count(sent.reduce((sum, row) => sum + row.times * row.members.length, 0));
  if (which === "Conflicts & stops") return count(open.conflicts.length + open.stops.length + open.wholes.length);
  return "";
}

function Tabs() {
  return (
    <nav class="tabs" role="tablist">
      {TABS.map((each) => (
        <button
          type="button"
          role="tab"
          key={each}
          aria-selected={tab.value === each}
          class={step.value.open.conflicts.length && each === "Conflicts & stops" ? "warns" : ""}
          aria-label={[each, numberOf(each)].filter(Boolean).join(", ")}
          onClick={() => (tab.value = each)}
        >
          {each.split(" & ")[0]}
          {each.includes(" & ") && <span class="long"> & {each.split(" & ")[1]}</span>}
          {numberOf(each) && <span class="badge">{numberOf(each)}</span>}
        </button>
      ))}
    </nav>
  );
}

function Program() {
  return (
    <div class="program">
      <Tree />
      <Graph />
    </div>
  );
}

const VIEWS: Record<Tab, () => preact.JSX.Element> = {
  Program,
  Collectives,
  Layouts,
  "Conflicts & stops": OpenEnds,
  Memory,
  Kernels,
};

const SEARCHED: Tab[] = ["Collectives", "Layouts"];

function App() {
  const View = VIEWS[tab.value];
  return (
    <>
      <header class="top">
        <Title />
        <Tabs />
        <Theme />
      </header>
      <Tactics />
      <div class="view" role="tabpanel">
        <View />
        {(tab.value === "Program" || tab.value === "Collectives") && <Inspector />}
        {tab.value === "Kernels" && <Waits />}
      </div>
    </>
  );
}

/** The page of a graph: the one view that a plan's page has of it. */
function OfGraph() {
  return (
    <>
      <header class="top">
        <Title />
        <Theme />
      </header>
      <div class="view">
        <Kernels />
        <Waits />
      </div>
    </>
  );
}

// Another address in the same window: a link, a bookmark, what the reader types.
window.addEventListener("hashchange", () => {
  if (data.graph) return;
  const [to, which] = asked();
  go(to);
  tab.value = which;
  address();
});

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (target.matches("input[type=search], select") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (event.key === "Escape") selection.value = null;
  if (event.key === "Escape") chosen.value = -1;
  if (data.graph) return;
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    event.preventDefault();
    go(at.value + (event.key === "ArrowRight" ? 1 : -1));
  }
  if (event.key === "/") {
    event.preventDefault();
    // The search of the view that is open, if it has one.
    if (!SEARCHED.includes(tab.value)) tab.value = "Collectives";
    requestAnimationFrame(() => document.querySelector<HTMLInputElement>("input[type=search]")?.select());
  }
});

render(data.graph ? <OfGraph /> : <App />, document.getElementById("app")!);
