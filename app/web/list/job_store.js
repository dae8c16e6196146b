/** The jobs of the service. */

import { signal } from "../vendor/ui.js";

/** @type {import("../vendor/ui.js").Signal<{id: string}[] | null>} */
export const jobs = signal(null);

/** Read the list anew. */
export async function refresh() {}
