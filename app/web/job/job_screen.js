/** The screen of one job: player, transcript, corrections and downloads, below its name and state. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { hasRevisions, hasSound } from "../core/me.js";
import { Menu } from "../core/menu.js";
import { go, listHash } from "../core/router.js";
import { service } from "../core/service.js";
import { sharedLink } from "../core/shared_link.js";
import { errorText, t, warningText } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { isSmall } from "../core/window_size.js";
import { removeJobs } from "../list/deletions.js";
import { filter } from "../list/job_store.js";
import { isOnScreen, MicrophoneBar } from "../list/microphone_bar.js";
import { openSettings } from "../shell/settings_dialog.js";
import { computed, html, useEffect, useLayoutEffect, useMemo, useSignal, useState } from "../vendor/ui.js";
import { createAgain } from "./again.js";
import { AgainDialog, AgainNotice } from "./again_dialog.js";
import { Details } from "./details.js";
import { EditToolbar } from "./edit_toolbar.js";
import { copyItems, DownloadMenu, downloadItems } from "./exports.js";
import { createSearch, placesOf } from "./find.js";
import { FindBar } from "./find_bar.js";
import { contentFacts, JobProgress, modelName, timeFacts } from "./job_facts.js";
import { createPlayback } from "./playback.js";
import { Player } from "./player.js";
import { PreviewDialog } from "./preview_dialog.js";
import { RevisionsDialog } from "./revisions.js";
import { LostCorrections } from "./saving_status.js";
import { openSession } from "./session.js";
import { AddressDialog, ShareDialog } from "./share_dialog.js";
import { usePrinting } from "./sheet.js";
import { SpeakersPanel } from "./speakers_panel.js";
import { Transcript } from "./transcript.js";
import { createView } from "./transcript_view.js";
import { isActive, isRecorded, isUnreadable, nameOf } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./segment_actions.js").Screen} Screen */

const COVERED_PX = 53; // by the top bar of a large window

/** @param {string} id @returns {Screen} */
function openScreen(id) {
  const session = openSession(id);
  return { session, playback: createPlayback(), view: createView(session), again: createAgain(session) };
}

/** @param {Screen} screen */
function closeScreen({ session, view, again }) {
  for (const part of [again, view.cues, session]) part.close();
}

/** One for each job. @param {{id: string, at: string | null}} props `at`: the segment that is shown first. */
export function JobScreen({ id, at }) {
  const screen = useMemo(() => openScreen(id), []);
  const { session, view, again } = screen;
  const search = useMemo(() => createSearch(session, view), []);
  const [isOpen, setOpen] = useState(false);
  const isWhole = isOpen || !isSmall.value;
  useEffect(() => () => closeScreen(screen), []);
  useOpening(at, screen);
  useTabTitle(session);
  const speakers = html`<${SpeakersPanel} screen=${screen} isShown=${isWhole} />`;
  const parent = session.job.value?.parent;
  useEffect(() => void (parent && go(`#/jobs/${parent}`)), [parent]);
  useScrollPadding(view);
  usePrinting(session);
  if (session.error.value) {
    return html`<div class="empty unavailable">
      <${Icon} name="file" />
      <h1>${t("job.unavailable")}</h1>
      <p dir="auto">${session.error.value.message}</p>
      ${!sharedLink && html`<a class="button primary" href="#/">${t("job.all")}</a>`}
    </div>`;
  }
  if (!session.job.value) return html`<${Skeleton} isConnected=${session.connected.value} />`;
  return html`<div class="job" data-layout=${view.layout.value} data-small=${isSmall.value || undefined}>
    <${JobHeader} screen=${screen} isWhole=${isWhole} toggle=${() => setOpen(!isOpen)} />
    <${AgainNotice} again=${again} />
    ${again.asked.value && html`<${AgainDialog} job=${session.job.value} again=${again} part=${again.asked.value} />`}
    <div class="job-top">
      <${EditToolbar} screen=${screen} search=${search} speakers=${!isSmall.value && speakers}>
        <${ActionsInSight} job=${session.job.value} screen=${screen} />
      <//>
      <${FindBar} screen=${screen} search=${search} />
    </div>
    ${hasSound.value && !isRecorded(session.job.value) && html`<${Player} screen=${screen} />`}
    ${isOnScreen() && html`<section class="player"><${MicrophoneBar} /></section>`}
    <${LostCorrections} session=${session} />
    ${isSmall.value && speakers}
    <${Transcript} screen=${screen} search=${search} />
  </div>`;
}

/**
 * Show a segment once it is here, and play from there when the reader plays.
 * @param {string | null} at
 * @param {Screen} screen
 */
function useOpening(at, { session, playback, view }) {
  const segment = useMemo(() => computed(() => session.segments.value.find(({ id }) => id === at)), [at]);
  const isHere = segment.value !== undefined;
  useEffect(() => {
    const shown = segment.peek();
    if (at === null || !shown) return;
    playback.seek(shown.start);
    view.go(at, true, placesOf(shown.text, filter.peek().q)[0]); // the word that the list has searched
  }, [isHere, segment]);
}

/** A shared link gets no file name. @param {Job} job */
function headingOf(job) {
  return sharedLink && job.title === null ? t("transcript.label") : nameOf(job);
}

/** @param {Session} session */
function useTabTitle(session) {
  const name = session.job.value && headingOf(session.job.value);
  useEffect(() => {
    const before = document.title;
    if (name) document.title = `${name} – ${before}`;
    return () => {
      document.title = before;
    };
  }, [name]);
}

/** The places of what comes. @param {{isConnected: boolean}} props */
function Skeleton({ isConnected }) {
  return html`<div class="job" aria-busy="true" data-small=${isSmall.value || undefined}>
    <p class=${isConnected ? "visually-hidden" : "muted"} role="status">${t(isConnected ? "loading" : "error.unreachable")}</p>
    <span class="skeleton job-skeleton-title"></span>
    ${[92, 78, 85, 60].map((width) => html`<span class="skeleton" style=${{ width: `${width}%` }}></span>`)}
  </div>`;
}

/** No segment that the keyboard reaches is below the player. The player itself is always in sight. @param {import("./transcript_view.js").View} view */
function useScrollPadding(view) {
  useLayoutEffect(() => {
    const { style } = document.documentElement;
    const update = (/** @type {FocusEvent} */ event) => {
      const isInText = /** @type {Element} */ (event.target).closest(".transcript") !== null;
      style.scrollPaddingTop = isInText ? `${view.list.clearTop() + 8}px` : "";
      style.scrollPaddingBottom = isInText ? `${innerHeight - view.list.clearBottom()}px` : "";
    };
    addEventListener("focusin", update);
    return () => {
      removeEventListener("focusin", update);
      style.scrollPadding = "";
    };
  }, [view]);
}

/**
 * @param {object} props
 * @param {Screen} props.screen
 * @param {boolean} props.isWhole With the facts and the notes.
 * @param {() => void} props.toggle Shows or hides these where the window is small.
 */
function JobHeader({ screen, isWhole, toggle }) {
  const { session } = screen;
  const job = session.job.value;
  if (!job) return null;
  const name = headingOf(job);
  const [length, languages] = contentFacts(job); // who speaks is among the tools
  return html`<header class="job-header">
    <div class="toolbar job-title">
      ${!sharedLink && html`<a class="icon-button job-back" href=${listHash.value} aria-label=${t("job.all")} title=${t("job.all")}><${Icon} name="back" /></a>`}
      <h1 dir="auto">${
        isSmall.value
          ? html`<button aria-expanded=${isWhole} title=${name} onClick=${toggle}><span class="one-line" dir="auto">${name}</span><${Icon} name="chevron" /></button>`
          : name
      }</h1>
      <${Actions} job=${job} screen=${screen} />
    </div>
    ${
      isWhole &&
      html`<div class="toolbar job-facts">
        <span class="small muted numbers">${[...timeFacts(job), length, languages, job.model === "demo" ? t("header.demo") : modelName(job.model)].filter(Boolean).join(" · ")}</span>
        <${Details} job=${job} session=${session} />
      </div>`
    }
    ${
      isActive(job) &&
      !isOnScreen() &&
      html`<div class="job-header-progress small muted"><${JobProgress} job=${job} />
        <span role="status">${!session.connected.value && t("error.unreachable")}</span></div>`
    }
    <${Notices} job=${job} screen=${screen} />
  </header>`;
}

/** What can be done with a transcript, as one menu once its header is out of sight. @param {{job: Job, screen: Screen}} props */
function ActionsInSight({ job, screen }) {
  const isPast = useSignal(false);
  useEffect(() => {
    const title = document.querySelector(".job-title");
    const notice = (/** @type {IntersectionObserverEntry[]} */ changes) => {
      isPast.value = !changes.at(-1)?.isIntersecting;
    };
    const covered = isSmall.value ? 0 : COVERED_PX;
    const observer = new IntersectionObserver(notice, { rootMargin: `-${covered}px 0px 0px` });
    if (title) observer.observe(title);
    return () => observer.disconnect();
  }, [isSmall.value]);
  return isPast.value && !isActive(job) && html`<${Actions} job=${job} screen=${screen} isCompact />`;
}

/** @param {{job: Job, screen: Screen, isCompact?: boolean}} props */
function Actions({ job, screen: { session, again }, isCompact = false }) {
  const [open, setOpen] = useState(/** @type {"preview" | "revisions" | "share" | null} */ (null));
  const close = () => setOpen(null);
  const remove = () => {
    removeJobs([job]);
    go(listHash.value);
  };
  if (isActive(job)) {
    return html`<div class="toolbar"><button class="button" onClick=${remove}>
      <${Icon} name="stop" />${t("history.cancelJob")}
    </button></div>`;
  }
  const isDone = job.status === "succeeded";
  const isWide = !isCompact && !isSmall.value;
  const [preview, share] = [() => setOpen("preview"), () => setOpen("share")];
  const ask = () => {
    again.asked.value = {};
  };
  const downloads = isDone && isCompact && downloadItems(job, session, preview);
  const copies = isDone && !isWide && copyItems(job, session);
  /** @type {import("../core/menu.js").MenuItems} */
  const more = [
    downloads && { label: t("export.download"), icon: "download", items: downloads },
    copies && { label: t("export.copy"), icon: "copy", items: copies },
    isDone &&
      hasRevisions.value && { label: t("revisions.open"), icon: "history", run: () => setOpen("revisions") },
    isDone && !isWide && !sharedLink && { label: t("share.open"), icon: "link", run: share },
    again.offered.value && { label: t("again.open"), icon: "retry", run: ask },
    !sharedLink && { label: t("history.delete"), icon: "trash", danger: true, run: remove },
    isSmall.value && { label: t("settings.title"), icon: "settings", run: openSettings },
  ];
  return html`<div class=${isCompact ? "actions-in-sight" : "toolbar"}>
    ${
      isDone &&
      isWide &&
      html`
      ${
        !sharedLink &&
        html`<button class="button" onClick=${share}><${Icon} name="link" />${t("share.open")}</button>`
      }
      <${Menu} label=${t("export.copy")} icon="copy" items=${copyItems(job, session)} />`
    }
    ${isDone && !isCompact && html`<${DownloadMenu} job=${job} unsaved=${session} openPreview=${preview} iconOnly=${!isWide} />`}
    ${more.some(Boolean) && html`<${Menu} label=${t("header.more")} icon="more" iconOnly items=${more} />`}
    ${open === "preview" && html`<${PreviewDialog} job=${job} session=${session} onClose=${close} />`}
    ${open === "revisions" && html`<${RevisionsDialog} job=${job} session=${session} onClose=${close} />`}
    ${open === "share" && html`<${service.keys ? ShareDialog : AddressDialog} job=${job} onClose=${close} />`}
  </div>`;
}

/** @param {{job: Job, screen: Screen}} props */
function Notices({ job, screen: { session, playback } }) {
  if (job.status === "failed") {
    const mayRun = !sharedLink && job.audio_expires_at && !isUnreadable(job);
    return html`<div class="notice danger" role="alert">
      <strong>${t("header.failed")}</strong>${" "}<span dir="auto">${job.error && errorText(job.error)}</span>
      ${mayRun && html`<p><button class="button" onClick=${() => session.runAgain().catch(toastError)}><${Icon} name="retry" />${t("again.title")}</button></p>`}
    </div>`;
  }
  return html`${
    job.failed_spans.length > 0 &&
    html`<div class="notice warning">
      <p>${t("header.partial")}</p>
      <p class="toolbar numbers">
        ${job.failed_spans.map(
          ({ start, end }) => html`<button class="button quiet" onClick=${() => playback.seek(start)}>
            ${clock(start)} – ${clock(end)}
          </button>`,
        )}
      </p>
    </div>`
  }${
    job.warnings?.length > 0 &&
    html`<ul class="notice warning" role="list">
      ${job.warnings.map(
        (warning) => html`<li>
          <button class="button quiet" disabled=${warning.start === null} onClick=${() => playback.seek(warning.start ?? 0)}>
            ${warningText(warning)}
          </button>
        </li>`,
      )}
    </ul>`
  }`;
}
