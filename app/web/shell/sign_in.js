/** Who uses the page, and how they leave it. */

import { apiKey } from "../core/api.js";
import { onSubmit } from "../core/controls.js";
import { shortDateTime } from "../core/format.js";
import { isOperator, me } from "../core/me.js";
import { sharedLink } from "../core/shared_link.js";
import { language, t } from "../core/text.js";
import { forgetDrafts } from "../job/drafts.js";
import { forgetUploads } from "../list/upload_storage.js";
import { html } from "../vendor/ui.js";

/** The name in the top bar. A key may have none. */
export function UserName() {
  const name = sharedLink ? null : me.value?.owner;
  if (!name || name.startsWith("key-")) return null;
  return html`<span class="small muted wide-only" dir="auto">${name}</span>`;
}

/** In the settings. */
export function Identity() {
  const { owner, shared } = me.value ?? {};
  if (shared) return html`<p>${t("me.link", { time: shortDateTime(shared.expires_at, language.value) })}</p>`;
  return html`
    ${owner && html`<p dir="auto">${t(isOperator.value ? "me.operator" : "me.user", { owner })}</p>`}
    ${
      apiKey.value &&
      !sharedLink &&
      html`<form onSubmit=${onSubmit(signOut)}>
      <label class="check"><input type="checkbox" name="all" />${t("me.forgetDrafts")}</label>
      <button class="button">${t("me.signOut")}</button>
    </form>`
    }`;
}

/** Forget the key, and all that was read with it. @param {FormData} fields */
async function signOut(fields) {
  if (fields.has("all")) await Promise.all([forgetDrafts(), forgetUploads()]);
  apiKey.value = "";
  location.reload();
}
