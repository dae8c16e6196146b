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
  "player.label": "Player",
  "player.play": "Play",
  "player.pause": "Pause",
  "player.playOrPause": "Play or pause",
  "player.back5": "Back 5 seconds",
  "player.forward5": "Forward 5 seconds",
  "player.back1": "Back 1 second",
  "player.forward1": "Forward 1 second",
  "player.slower": "Slower",
  "player.faster": "Faster",
  "player.rate": "Speed",
  "player.loop": "Repeat this segment",
  "player.mute": "Mute",
  "player.volume": "Volume",
  "player.captions": "Captions",
  "player.pictureInPicture": "Small window",
  "player.fullscreen": "Full screen",
  "player.zoomIn": "Zoom in on the waveform",
  "player.zoomOut": "Zoom out of the waveform",
  "player.more": "More for the player",
  "player.skipsBack": "After a pause, go back 1.5 seconds",
  "player.position": "Position",
  "player.positionOf": "{time} of {duration}",
  "player.preparing": "The sound is being prepared …",
  "player.waiting": "The recording is being downloaded. It can be played after that.",
  "player.unplayable": "This browser can play neither the recording nor a copy of it. Try another browser, or download the recording.",
  "player.retry": "Retry",

  // Corrections
  "saving.saved": "Saved",
  "saving.saving": "Saving …",
  "saving.unsaved": "Not saved yet",
  "saving.later": "Corrections are saved when the job ends",
  "saving.offline": "The service cannot be reached. Corrections are safe in this browser",
  "saving.conflict": "Someone else has corrected the same places",
  "saving.refused": "Not saved",
  "saving.now": "Save",
  "saving.choose": "Choose",
  "saving.copy": "Download my version",
  "saving.dismiss": "Dismiss",
  "saving.merged": "Corrections from elsewhere were merged with yours",
  "saving.restored": "Unsaved corrections are back",
  "saving.gone": "The job was deleted before your corrections were saved. Download them to keep them.",
  "saving.jobFailed": "The job has no result, so it takes no corrections. Download your version to keep it.",
  "saving.lostTitle": "Corrections without a place",
  "saving.lost": {
    one: "The text changed, and one of your corrections has no place in it. Download it to keep it.",
    other:
      "The text changed, and {count} of your corrections have no place in it. Download them to keep them.",
  },
  "conflict.title": "Two versions",
  "conflict.why": {
    one: "Someone else has saved corrections at one place that you have changed, too. Choose which one stays.",
    other:
      "Someone else has saved corrections at {count} places that you have changed, too. Choose which ones stay.",
  },
  "conflict.at": "At {time}",
  "conflict.mine": "Keep mine",
  "conflict.theirs": "Take theirs",
  "conflict.allMine": "Keep all of mine",
  "conflict.allTheirs": "Take all of theirs",
  "conflict.removed": "Removed",
  "conflict.copy": "Keep mine as a copy",
  "conflict.open": { one: "One place is open", other: "{count} places are open" },
  "conflict.later": "Decide later",
  "conflict.save": "Save",
  "undo.text": "Change text",
  "undo.times": "Change times",
  "undo.speaker": "Change speaker",
  "undo.split": "Split segment",
  "undo.join": "Join segments",
  "undo.insert": "Insert segment",
  "undo.remove": "Delete segment",
  "undo.replace": "Replace text",
  "undo.theirs": "Merge corrections",

  // Downloads and revisions

  // The fleet
};
