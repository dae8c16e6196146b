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

  // All transcripts
  "history.title": "Alle Transkripte",
  "history.search": "Namen und Texte durchsuchen",
  "history.searchKey": "Suchen",
  "history.clear": "Suche leeren",
  "history.filter": "Stand",
  "history.any": "Jeder Stand",
  "history.list": "Transkripte",
  "history.more": "Weitere zeigen",
  "history.empty": "Noch keine Transkripte.",
  "history.notFound": "Kein Transkript passt zur Suche.",
  "history.showAll": "Alle zeigen",
  "history.retry": "Erneut versuchen",
  "history.select": "{name} auswählen",
  "history.selectAll": "Alle gezeigten auswählen",
  "history.selected": { one: "{count} ausgewählt", other: "{count} ausgewählt" },
  "history.unselect": "Auswahl aufheben",
  "history.downloadAs": { one: "{count} herunterladen als …", other: "{count} herunterladen als …" },
  "history.noneDone":
    "Von den ausgewählten Aufträgen ist keiner fertig. Mindestens einen fertigen auswählen.",
  "history.archiveBegins": "Die Transkripte werden gepackt.",
  "history.delete": "Löschen",
  "history.cancelJob": "Abbrechen",
  "history.deleteKey": "Zeile im Fokus löschen",
  "history.undo": "Rückgängig",
  "history.undoKey": "Löschen rückgängig machen",
  "history.deleted": "Gelöscht: {name}",
  "history.cancelled": "Abgebrochen: {name}",
  "history.deletedMany": { one: "{count} Auftrag gelöscht", other: "{count} Aufträge gelöscht" },
  "history.found": { one: "{count} Transkript gefunden", other: "{count} Transkripte gefunden" },
  "status.queued": "In der Warteschlange",
  "status.running": "Läuft",
  "status.succeeded": "Fertig",
  "status.failed": "Gescheitert",
  "status.cancelled": "Abgebrochen",
  "stage.queued": "Wartet, bis es an der Reihe ist",
  "stage.downloading": "Aufnahme wird heruntergeladen",
  "stage.decoding": "Wird gelesen und transkribiert",
  "stage.transcribing": "Wird transkribiert",
  "stage.done": "Fertig",
  "progress.label": "Fortschritt",
  "progress.speed": "{speed}× Echtzeit",
  "progress.left": "noch {time}",
  "time.seconds": { one: "{count} s", other: "{count} s" },
  "time.minutes": { one: "{count} min", other: "{count} min" },
  "time.hours": { one: "{count} h {minutes} min", other: "{count} h {minutes} min" },

  // A transcript
  "job.unavailable": "Dieses Transkript kann nicht angezeigt werden",
  "job.all": "Alle Transkripte",

  // Player

  // Corrections

  // Downloads and revisions
  "export.download": "Herunterladen",
  "export.copy": "Kopieren",
  "export.asText": "Als Text",
  "export.asSrt": "Als Untertitel (SRT)",
  "export.copied": "In die Zwischenablage kopiert",
  "export.notCopied": "Der Browser lässt das Kopieren nicht zu. Die Datei lässt sich herunterladen.",
  "export.savedText":
    "Die Datei hat den gespeicherten Stand: Die letzten Korrekturen ließen sich nicht speichern.",
  "export.recording": "Originalaufnahme",
  "format.srt": "Untertitel für Player und Videoportale",
  "format.vtt": "Untertitel für Webseiten",
  "format.txt": "Nur der Text",
  "format.ass": "Untertitel mit Gestaltung",
  "format.ttml": "Untertitel für Streamingdienste",
  "format.scc": "Untertitel für US-Sender",
  "format.stl": "Untertitel für europäische Sender (EBU)",
  "format.lrc": "Zeilen mit Zeiten, für Musikplayer",
  "format.tsv": "Tabelle aus Zeiten und Text",
  "format.json": "Text für Programme",
  "format.verbose_json": "Segmente und Bewertungen, für Programme",
  "format.detailedJson": "JSON, ausführlich",
  "header.more": "Mehr",
  "header.partial": "Ein Teil der Aufnahme ließ sich nicht transkribieren. Diese Zeiten fehlen:",
  "header.demo": "Demo-Modell",
  "header.failed": "Diese Aufnahme ließ sich nicht transkribieren.",
  "revisions.title": "Versionen",
  "revisions.open": "Versionen",
  "revisions.list": "Versionen des Textes",
  "revisions.original": "Original",
  "revisions.number": "Version {number}",
  "revisions.newest": "neueste",
  "revisions.changed": { one: "{count} Segment geändert", other: "{count} Segmente geändert" },
  "revisions.only": "Noch keine Korrekturen. Jede gespeicherte steht dann hier.",
  "revisions.choose": "Eine Version wählen, um zu sehen, worin sie von der neuesten abweicht.",
  "revisions.same": "Der Text ist derselbe wie in der neuesten Version.",
  "revisions.isNewest": "Das ist die neueste Version.",
  "revisions.difference": "Markiert ist, was durch das Zurückholen dieser Version dazukäme und was wegfiele.",
  "revisions.all": "Auch Segmente ohne Unterschied zeigen",
  "revisions.moved": "andere Zeiten oder andere Stimme",
  "revisions.restore": "Zurückholen",
  "revisions.restored": "Zurückgeholt: {name}",
  "revisions.conflict":
    "Der Text wurde inzwischen geändert, daher wurde nichts zurückgeholt. Neu vergleichen und wiederholen.",

  // The fleet
};

export default texts;
