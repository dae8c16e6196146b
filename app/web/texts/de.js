/** German. */

/** @type {Record<import("../core/text.js").TextKey, string | Record<string, string>>} */
const texts = {
  // Everywhere
  cancel: "Abbrechen",
  close: "Schließen",
  loading: "Wird geladen …",
  demo: "Dieser Dienst nutzt das Demo-Modell. Es versteht nur die künstliche Sprache seiner Beispiele.",
  "error.unreachable": "Der Dienst ist nicht erreichbar. Läuft er, und steht die Verbindung?",
  "error.status": "Der Server antwortete mit Status {status}. Später noch einmal versuchen.",

  // Frame
  "nav.label": "Seiten",
  "nav.skip": "Zum Inhalt",
  "nav.transcripts": "Transkripte",
  "nav.fleet": "Flotte",
  "help.title": "Tasten",
  "help.open": "Liste der Tasten",
  "help.transcripts": "Alle Transkripte",
  "help.fleet": "Die Flotte",
  "key.space": "Leertaste",
  "key.title": "API-Schlüssel",
  "key.why":
    "Dieser Dienst verlangt einen Schlüssel. Der Browser merkt ihn sich und sendet ihn nur an diesen Dienst.",
  "key.label": "Schlüssel",
  "key.wrong": "Der Dienst kennt diesen Schlüssel nicht. Bitte prüfen oder den Betreiber fragen.",
  "key.use": "Verwenden",
  "settings.title": "Einstellungen",
  "settings.language": "Sprache dieser Seite",
  "settings.theme": "Farben",
  "settings.automatic": "Automatisch",
  "settings.light": "Hell",
  "settings.dark": "Dunkel",
  "settings.forgetKey": "API-Schlüssel vergessen",
  "settings.docs": "API-Dokumentation",

  // New recordings
  "intake.title": "Neue Aufnahmen",
  "intake.hint": "Audio oder Video irgendwo auf dieser Seite ablegen, auch ganze Ordner.",
  "intake.files": "Dateien wählen",
  "intake.folder": "Ordner",
  "intake.url": "URL",
  "intake.record": "Aufnehmen",
  "intake.drop": "Ablegen zum Transkribieren",
  "intake.show": "Anzeigen",
  "intake.urlLabel": "Adresse einer Aufnahme",
  "intake.urlAdd": "Transkribieren",
  "intake.urlWrong": "Das ist keine Web-Adresse. Sie beginnt mit http:// oder https://.",
  "intake.noUrls":
    "Dieser Dienst nimmt keine URLs an. Die Aufnahme herunterladen und die Datei hier ablegen.",
  "upload.list": "Unterwegs",
  "upload.added": { one: "{count} Aufnahme hinzugefügt", other: "{count} Aufnahmen hinzugefügt" },
  "upload.skipped": {
    one: "Übersprungen, weil es keine Aufnahme ist: {names}",
    other: "{count} Dateien übersprungen, weil sie keine Aufnahmen sind: {names}",
  },
  "upload.more": { one: "{count} weitere anzeigen", other: "{count} weitere anzeigen" },
  "upload.tooLarge":
    "Diese Datei ist größer als die {limit}, die der Dienst annimmt. Die Datei komprimieren oder nur ihre Tonspur senden.",
  "upload.waiting": "wartet",
  "upload.sending": "wird hochgeladen",
  "upload.submitting": "wird übergeben",
  "upload.delayed": "unterbrochen; geht von selbst weiter",
  "upload.paused": "angehalten",
  "upload.failed": "fehlgeschlagen",
  "upload.fileNeeded": "zum Fortsetzen die Datei erneut wählen",
  "upload.sent": "{sent} von {size}",
  "upload.rate": "{rate}/s",
  "upload.left": "noch {time}",
  "upload.progress": "Hochladen von {name}",
  "upload.restarted": "Der Dienst hat das bereits Hochgeladene nicht mehr. Es wird erneut hochgeladen.",
  "upload.do.pause": "Anhalten",
  "upload.do.resume": "Fortsetzen",
  "upload.do.retry": "Erneut versuchen",
  "upload.do.remove": "Entfernen",
  "upload.chooseAgain": "Datei wählen",
  "upload.otherFile":
    "Das ist eine andere Datei, oder sie wurde geändert. {name} ({size}) wählen oder diese als neue Aufnahme ablegen.",
  "microphone.label": "Aufnahme vom Mikrofon",
  "microphone.level": "Pegel",
  "microphone.stop": "Beenden und transkribieren",
  "microphone.discard": "Aufnahme verwerfen",
  "microphone.discarded": "Aufnahme verworfen",
  "microphone.keep": "Behalten",
  "microphone.name": "Aufnahme {time}",
  "microphone.insecure":
    "Browser geben das Mikrofon nur für Seiten über HTTPS oder auf dem eigenen Rechner frei. Beides trifft hier nicht zu.",
  "microphone.refused":
    "Der Browser gibt das Mikrofon nicht frei. Neben der Adresse für diese Seite erlauben und erneut aufnehmen.",
  "microphone.missing": "Es gibt kein Mikrofon. Eines anschließen und erneut aufnehmen.",
  "microphone.failed": "Das Mikrofon startet nicht: {reason}. Prüfen, ob ein anderes Programm es benutzt.",
  "options.title": "Optionen",
  "options.changed": { one: "{count} geändert", other: "{count} geändert" },
  "options.reset": "Alle zurücksetzen",
  "options.more": "Mehr",
  "options.remembered": "Für Aufnahmen, die ab jetzt hinzukommen. Der Browser merkt sie sich.",
  "options.automatic": "automatisch",
  "option.language": "Gesprochene Sprache",
  "option.language.default": "Erkennen",
  "option.task": "Text",
  "option.task.transcribe": "In der gesprochenen Sprache",
  "option.task.translate": "Auf Englisch übersetzt",
  "option.model": "Modell",
  "option.profile": "Untertitelstil",
  "option.profile.default": "Automatisch",
  "option.profile.netflix": "Netflix",
  "option.profile.bbc": "BBC",
  "option.profile.broadcast": "Rundfunk",
  "option.profile.social": "Soziale Medien",
  "option.max_line_chars": "Zeichen pro Zeile",
  "option.prompt": "Vorgabe",
  "option.prompt.hint": "Ein Text im gewünschten Stil und in der gewünschten Schreibweise.",
  "option.hotwords": "Namen und Fachwörter",
  "option.hotwords.hint": "Erwartete Wörter, durch Kommas getrennt.",
  "option.multilingual": "Mehrere Sprachen in einer Aufnahme",
  "option.temperature": "Temperatur",
  "option.temperature.hint": "0 ergibt jedes Mal denselben Text.",
  "option.beam_size": "Suchbreite (Beams)",
  "option.vad_threshold": "Schwelle für Sprache",
  "option.vad_threshold.hint": "Niedriger findet leisere Sprache.",
  "option.min_speech_ms": "Kürzeste Sprache (ms)",
  "option.min_silence_ms": "Kürzeste Pause (ms)",
  "option.speech_pad_ms": "Rand um Sprache (ms)",
  "option.max_lines": "Zeilen pro Untertitel",
  "option.max_cps": "Zeichen pro Sekunde",
  "option.min_cue_s": "Kürzester Untertitel (s)",
  "option.max_cue_s": "Längster Untertitel (s)",
  "option.min_gap_s": "Abstand zwischen Untertiteln (s)",
  "option.fps": "Bilder pro Sekunde",
  "option.start_offset_s": "Untertitel beginnen früher um (s)",
  "option.word_level": "Wortzeiten in Untertiteln",
  "option.srt_bom": "SRT mit Byte-Order-Mark",
  "option.srt_crlf": "SRT mit Zeilenenden von Windows",
  "option.chinese": "Chinesische Schrift",
  "option.chinese.keep": "Unverändert",
  "option.chinese.traditional": "Traditionell",
  "option.chinese.simplified": "Vereinfacht",
  "option.allow_partial": "Transkript mit Lücken annehmen",

  // All transcripts

  // A transcript
  "job.unavailable": "Dieses Transkript kann nicht angezeigt werden",
  "job.all": "Alle Transkripte",

  // Player

  // Corrections

  // Downloads and revisions

  // The fleet
};

export default texts;
