// What the reader has chosen. Everything on the page is computed from this and from the data.
import { computed, effect, signal } from "@preact/signals";
import { read } from "./data";

export const data = read();
export const text = (number: number) => data.texts[number] ?? "";

export const TABS = ["Program", "Collectives", "Layouts", "Conflicts & stops", "Memory", "Kernels"] as const;
export type Tab = (typeof TABS)[number];

export type Selection =
  | { what: "row"; row: number; member?: number }
  | { what: "fold"; fold: number }
  | { what: "op"; op: number }
  | { what: "edge"; from: string; to: string }
  | null;

// The address has the step and the view, so that a link leads to them: plan.html#2/Memory
export function asked(): [number, Tab] {
  let said = location.hash.slice(1);
  try {
    said = decodeURIComponent(said);
  } catch {
    // A broken address, such as `#%`, leads nowhere in particular.
  }
  const [number = "", wanted = ""] = said.split("/");
  const last = data.steps.length - 1;
  return [/^\d+$/.test(number) ? Math.min(Number(number), last) : last, TABS.find((each) => each === wanted) ?? "Program"];
}

const [firstStep, firstTab] = asked();
export const at = signal(firstStep);
export const tab = signal<Tab>(firstTab);
export const address = () => {
  // Inside a notebook the page is text of a frame, which has no address.
  if (location.protocol !== "about:" && !data.graph) history.replaceState(null, "", `#${at.value}/${encodeURIComponent(tab.value)}`);
};
effect(address);

/** The size of the window, by which the form of the tactics is chosen. */
export const wide = signal(window.innerWidth);
export const high = signal(window.innerHeight);
window.addEventListener("resize", () => {
  wide.value = window.innerWidth;
  high.value = window.innerHeight;
});
export const selection = signal<Selection>(null);
export const expanded = signal<ReadonlySet<number>>(new Set([0]));
/** The fold that was folded or unfolded last. */
export const toggled = signal(0);
export const search = signal("");
/** How the collectives are ordered. */
export type Order = "program" | "bytes" | "times";
export const order = signal<Order>("bytes");
export const arrays = signal("");
export const chosenValue = signal(-1);

export const step = computed(() => data.steps[at.value]);
export const before = computed(() => (at.value > 0 ? data.steps[at.value - 1] : null));

type Theme = "light" | "dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const chosenTheme = signal<Theme | null>(null);
const preferred = signal<Theme>(system.matches ? "dark" : "light");
system.addEventListener("change", () => (preferred.value = system.matches ? "dark" : "light"));
export const theme = computed(() => chosenTheme.value ?? preferred.value);
export const otherTheme = () => (chosenTheme.value = theme.value === "dark" ? "light" : "dark");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
