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
};
