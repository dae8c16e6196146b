/** Light or dark: as the system has it, unless the reader chooses. */

import { shared } from "../core/storage.js";
import { matching } from "../core/window_size.js";
import { effect, signal } from "../vendor/ui.js";

/** `light`, `dark`, or empty: that of the system. */
export const theme = shared("theme", "");

const isSystemDark = matching("(prefers-color-scheme: dark)");
/** Of what is shown: styles have it before those who watch this. */
export const isDark = signal(false);

effect(() => {
  const { dataset } = document.documentElement;
  if (theme.value) dataset.theme = theme.value;
  else delete dataset.theme;
  isDark.value = theme.value ? theme.value === "dark" : isSystemDark.value;
});
