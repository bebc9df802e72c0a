// Numbers as people read them.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL = ["", "k", "M", "G", "T", "P"];

function scaled(value: number, base: number, units: string[], gap: string): string {
  let at = 0;
  let rest = value;
  while (rest >= base * 0.9995 && at < units.length - 1) {
    rest /= base;
    at += 1;
  }
  const digits = at === 0 || rest >= 100 ? 0 : rest >= 10 ? 1 : 2;
  return `${rest.toFixed(digits)}${gap}${units[at]}`.trim();
}

export const bytes = (value: number) => scaled(value, 1024, BINARY, "\u00a0");
export const exact = (value: number) => value.toLocaleString("en-US");
export const flops = (value: number) => `${scaled(value, 1000, DECIMAL, "\u00a0")}${value < 999.5 ? "\u00a0" : ""}FLOP`;
export const count = (value: number) => (value < 100_000 ? exact(value) : scaled(value, 1000, DECIMAL, ""));

/** `1 row`, `2 rows`. */
export const counted = (value: number, one: string) => `${exact(value)} ${one}${value === 1 ? "" : "s"}`;

export function percent(part: number, whole: number): string {
  if (!whole || !part) return "0\u00a0%";
  const share = (100 * part) / whole;
  return `${share < 0.1 ? "<0.1" : share.toFixed(share < 10 ? 1 : 0)}\u00a0%`;
}

/** How a figure changes from one step to the next: `−62 %`, `×3.1`, `new`. */
export function change(before: number, after: number): string {
  if (before === after) return "";
  if (before === 0) return "new";
  const ratio = after / before;
  if (ratio >= 2) return `×${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(1)}`;
  const share = Math.abs(ratio - 1) * 100;
  if (share < 0.05) return "";
  return `${ratio < 1 ? "−" : "+"}${share < 1 ? share.toFixed(1) : share.toFixed(0)}\u00a0%`;
}

/** As papers shorten them; the full names are beside it, or in a tooltip. */
const SHORT: Record<string, string> = {
  all_gather: "AG",
  all_reduce: "AR",
  reduce_scatter: "RS",
  all_to_all: "A2A",
  permute: "P",
};

export const shortKind = (kind: string) => SHORT[kind] ?? kind;
