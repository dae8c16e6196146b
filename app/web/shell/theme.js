/** Light or dark: as the system has it, unless the reader chooses. */

import { shared } from "../core/storage.js";
import { effect } from "../vendor/ui.js";

/** `light`, `dark`, or empty: that of the system. */
export const theme = shared("theme", "");

effect(() => {
  const { dataset } = document.documentElement;
  if (theme.value) dataset.theme = theme.value;
  else delete dataset.theme;
});
