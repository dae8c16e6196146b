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
  "key.why": "Dieser Dienst verlangt einen Schlüssel. Der Browser merkt ihn sich und sendet ihn nur an diesen Dienst.",
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

  // A transcript
  "job.unavailable": "Dieses Transkript kann nicht angezeigt werden",
  "job.all": "Alle Transkripte",
  "transcript.label": "Transkript",
  "transcript.playFrom": "Ab {time} abspielen",
  "transcript.growing": "Weiterer Text folgt, sobald er transkribiert ist.",
  "transcript.waiting": "Der Text erscheint hier, während die Aufnahme transkribiert wird.",
  "transcript.silent": "In dieser Aufnahme spricht niemand.",
  "transcript.none": "Es gibt keinen Text.",
  "transcript.failed": "{start} bis {end} konnte nicht transkribiert werden.",
  "transcript.backToPlaying": "Zurück zur laufenden Stelle",
  "keys.next": "Nächstes Segment",
  "keys.previous": "Voriges Segment",
  "keys.edit": "Segment bearbeiten oder fertigstellen",
  "keys.leave": "Bearbeiten beenden",
  "keys.split": "Beim Bearbeiten: am Cursor teilen",
  "keys.join": "Am Textanfang: mit dem vorigen Segment verbinden",
  "keys.editNext": "Beim Bearbeiten: zum nächsten Segment",
  "keys.remove": "Segment löschen",
  "find.open": "Suchen",
  "find.query": "Suchen",
  "find.replacement": "Ersetzen durch",
  "find.none": "Keine Treffer",
  "find.count": { one: "{count} Treffer", other: "{count} Treffer" },
  "find.place": "{at} von {count}",
  "find.previous": "Voriger Treffer",
  "find.next": "Nächster Treffer",
  "find.matchCase": "Groß- und Kleinschreibung beachten",
  "find.wholeWord": "Nur ganze Wörter",
  "find.replaceMode": "Suchen und ersetzen",
  "find.replace": "Ersetzen",
  "find.replaceAll": "Alle ersetzen",
  "find.replaced": { one: "{count} Stelle ersetzt.", other: "{count} Stellen ersetzt." },

  // Player

  // Corrections
  "edit.toolbar": "Korrekturen",
  "edit.control": "Strg",
  "edit.edit": "Text bearbeiten",
  "edit.more": "Weitere Aktionen",
  "edit.times": "Zeiten ändern",
  "edit.setSpeaker": "Sprecher angeben",
  "edit.split": "Teilen",
  "edit.splitHere": "Hier teilen",
  "edit.join": "Mit nächstem verbinden",
  "edit.insert": "Danach einfügen",
  "edit.remove": "Löschen",
  "edit.removed": "Segment gelöscht.",
  "edit.done": "Fertig",
  "edit.text": "Text des Segments",
  "edit.start": "Beginn",
  "edit.end": "Ende",
  "edit.speaker": "Sprecher",
  "edit.noTime": "Das ist keine Zeit. Schreibweise: 1:02.50.",
  "edit.timeKeys": "Pfeil auf und ab ändern um 0,1 s, mit Umschalt um 1 s",
  "edit.noSplit": "Dieses Segment lässt sich dort nicht teilen. Den Cursor zwischen zwei Wörter setzen.",
  "edit.noSpace": "Zwischen diesen Segmenten ist keine Zeit frei. Zuerst eines davon kürzen.",
  "edit.undo": "Rückgängig",
  "edit.redo": "Wiederholen",
  "edit.undone": "Rückgängig gemacht.",
  "edit.redone": "Wiederholt.",
  "edit.nextUnsure": "Nächstes unsicheres Wort",
  "edit.previousUnsure": "Voriges unsicheres Wort",
  "edit.unsure": "Unsicheres Wort: {word}",
  "edit.noUnsure": "Kein Wort ist als unsicher markiert.",
  "edit.save": "Speichern",
  "edit.saved": "Gespeichert",
  "edit.saving": "Wird gespeichert …",
  "edit.unsaved": "Nicht gespeicherte Änderungen",
  "edit.savedLater": "Änderungen werden am Ende des Auftrags gespeichert",
  "edit.offline": "Offline: Änderungen bleiben in diesem Browser",
  "edit.conflict": "Jemand anderes hat das Transkript geändert",
  "edit.showPlace": "Anzeigen",

  // Downloads and revisions

  // The fleet
};

export default texts;
