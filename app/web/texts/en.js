/** English. */

export default {
  // Everywhere
  cancel: "Cancel",
  close: "Close",
  loading: "Loading …",
  demo: "This service runs the demo model. It understands only the synthetic speech of its examples.",
  "error.unreachable": "The service cannot be reached. Check that it runs, and the connection.",
  "error.status": "The server answered with status {status}. Try again later.",

  // Frame
  "nav.label": "Pages",
  "nav.skip": "Skip to content",
  "nav.transcripts": "Transcripts",
  "nav.fleet": "Fleet",
  "help.title": "Keys",
  "help.open": "List of keys",
  "help.transcripts": "All transcripts",
  "help.fleet": "The fleet",
  "key.space": "Space",
  "key.title": "API key",
  "key.why": "This service needs a key. The browser keeps it, and sends it to this service only.",
  "key.label": "Key",
  "key.wrong": "The service does not know this key. Check it, or ask the operator.",
  "key.use": "Use key",
  "settings.title": "Settings",
  "settings.language": "Language of this page",
  "settings.theme": "Colours",
  "settings.automatic": "Automatic",
  "settings.light": "Light",
  "settings.dark": "Dark",
  "settings.forgetKey": "Forget the API key",
  "settings.docs": "API documentation",

  // New recordings

  // All transcripts

  // A transcript
  "job.unavailable": "This transcript cannot be shown",
  "job.all": "All transcripts",

  // Player

  // Corrections

  // Downloads and revisions

  // The fleet
  "fleet.live": "Live",
  "fleet.connecting": "Connecting …",
  "fleet.lost": "Connection lost, connecting again …",
  "fleet.asTable": "Show as table",
  "fleet.none": "This service has no workers. Look at the log of its start.",
  "fleet.ready": "Workers ready",
  "fleet.readyOf": "{ready} of {all}",
  "fleet.busyCount": "{count} busy",
  "fleet.down": { one: "{count} out of service", other: "{count} out of service" },
  "fleet.speed": "Speed, × real time",
  "fleet.audioPerMinute": "{time} of audio per minute",
  "fleet.queue": "Queue",
  "fleet.clips": { one: "{shown} clip", other: "{shown} clips" },
  "fleet.jobs": { one: "{count} more job waits", other: "{count} more jobs wait" },
  "fleet.noJobs": "no more jobs wait",
  "fleet.nothingWaits": "nothing waits",
  "fleet.oldest": "Oldest clip",
  "fleet.oldestNote": "waits for a worker",
  "fleet.lanes": "Workers",
  "fleet.worker": "Worker {slot}",
  "fleet.state.idle": "Ready",
  "fleet.state.busy": "Busy",
  "fleet.state.loading": "Loading the model",
  "fleet.state.asleep": "Asleep",
  "fleet.state.restarting": "Restarting",
  "fleet.state.quarantined": "Quarantined",
  "fleet.state.failed": "Failed",
  "fleet.restarts": { one: "{count} restart", other: "{count} restarts" },
  "fleet.limited": "limited",
  "fleet.noReason": "The worker has failed.",
  "fleet.nextRestarting": "A new process starts. Its clips are retried.",
  "fleet.nextQuarantined":
    "It is probed again at least once a minute, and works again when a probe succeeds. The other workers do its work.",
  "fleet.nextFailed": "It is started again at least once a minute. The other workers do its work.",
  "fleet.memory": "Memory of the GPU",
  "fleet.memoryOf": "{used} / {total} GB",
  "fleet.utilisation": "Utilisation of the GPU",
  "fleet.timeline":
    "Work of worker {slot} in the last five minutes. The arrow keys move between its blocks and the workers.",
  "fleet.noBlocks": "This worker has done nothing in the last five minutes.",
  "fleet.minutesAgo": "−{count} min",
  "fleet.now": "now",
  "fleet.legend": "Jobs of the last five minutes",
  "fleet.noWork": "No work in the last five minutes.",
  "fleet.direct": "Direct requests",
  "fleet.deleted": "Deleted job",
  "fleet.moreJobs": { one: "{count} more", other: "{count} more" },
  "fleet.fewerJobs": "Show fewer",
  "fleet.running": "for {time} so far",
  "fleet.blockFacts": "{audio} of audio in {time}, {speed} real time",
  "fleet.outcome.failed": "Failed",
  "fleet.outcome.requeued": "Queued again",
  "fleet.table": "The workers of the fleet",
  "fleet.column.worker": "Worker",
  "fleet.column.device": "Device",
  "fleet.column.model": "Model",
  "fleet.column.state": "State",
  "fleet.column.working": "Works on",
  "fleet.column.clips": "Clips in 5 min",
  "fleet.column.lost": "Failed / queued again",
  "fleet.column.gpu": "GPU",
  "fleet.column.restarts": "Restarts",
  "fleet.seconds": "{s} s",
  "fleet.minutes": "{min} min {s} s",
  "fleet.hours": "{h} h {min} min",
};
