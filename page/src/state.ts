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

export const at = signal(data.steps.length - 1);
export const tab = signal<Tab>("Program");
export const selection = signal<Selection>(null);
export const expanded = signal<ReadonlySet<number>>(new Set([0]));
export const search = signal("");
export const arrays = signal("");
export const chosenValue = signal(-1);

export const step = computed(() => data.steps[at.value]);
export const before = computed(() => (at.value > 0 ? data.steps[at.value - 1] : null));

type Theme = "light" | "dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const asked = signal<Theme | null>(null);
const preferred = signal<Theme>(system.matches ? "dark" : "light");
system.addEventListener("change", () => (preferred.value = system.matches ? "dark" : "light"));
export const theme = computed(() => asked.value ?? preferred.value);
export const otherTheme = () => (asked.value = theme.value === "dark" ? "light" : "dark");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
