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

  // A transcript
  "job.unavailable": "Dieses Transkript kann nicht angezeigt werden",
  "job.all": "Alle Transkripte",

  // Player
  "player.label": "Wiedergabe",
  "player.play": "Abspielen",
  "player.pause": "Anhalten",
  "player.playOrPause": "Abspielen oder anhalten",
  "player.back5": "5 Sekunden zurück",
  "player.forward5": "5 Sekunden vor",
  "player.back1": "1 Sekunde zurück",
  "player.forward1": "1 Sekunde vor",
  "player.slower": "Langsamer",
  "player.faster": "Schneller",
  "player.rate": "Tempo",
  "player.loop": "Segment wiederholen",
  "player.mute": "Stumm",
  "player.volume": "Lautstärke",
  "player.captions": "Untertitel",
  "player.pictureInPicture": "Kleines Fenster",
  "player.fullscreen": "Vollbild",
  "player.zoomIn": "Wellenform vergrößern",
  "player.zoomOut": "Wellenform verkleinern",
  "player.more": "Mehr zur Wiedergabe",
  "player.skipsBack": "Nach einer Pause 1,5 Sekunden zurück",
  "player.position": "Position",
  "player.positionOf": "{time} von {duration}",
  "player.preparing": "Der Ton wird vorbereitet …",
  "player.waiting": "Die Aufnahme wird heruntergeladen. Danach lässt sie sich abspielen.",
  "player.unplayable": "Dieser Browser kann weder die Aufnahme noch eine Kopie davon abspielen. Ein anderer Browser hilft, oder das Herunterladen der Aufnahme.",
  "player.retry": "Noch einmal",

  // Corrections
  "saving.saved": "Gespeichert",
  "saving.saving": "Wird gespeichert …",
  "saving.unsaved": "Noch nicht gespeichert",
  "saving.later": "Korrekturen werden am Ende des Auftrags gespeichert",
  "saving.offline": "Der Dienst ist nicht erreichbar. Die Korrekturen sind in diesem Browser sicher",
  "saving.conflict": "Jemand anderes hat dieselben Stellen korrigiert",
  "saving.refused": "Nicht gespeichert",
  "saving.now": "Speichern",
  "saving.choose": "Auswählen",
  "saving.copy": "Meine Fassung herunterladen",
  "saving.dismiss": "Verwerfen",
  "saving.merged": "Korrekturen von anderswo wurden mit den eigenen zusammengeführt",
  "saving.restored": "Ungespeicherte Korrekturen sind wieder da",
  "saving.gone":
    "Der Auftrag wurde gelöscht, bevor die Korrekturen gespeichert waren. Zum Behalten herunterladen.",
  "saving.jobFailed":
    "Der Auftrag hat kein Ergebnis und nimmt daher keine Korrekturen an. Die eigene Fassung zum Behalten herunterladen.",
  "saving.lostTitle": "Korrekturen ohne Stelle",
  "saving.lost": {
    one: "Der Text hat sich geändert, und eine Korrektur findet keine Stelle mehr. Zum Behalten herunterladen.",
    other:
      "Der Text hat sich geändert, und {count} Korrekturen finden keine Stelle mehr. Zum Behalten herunterladen.",
  },
  "conflict.title": "Zwei Fassungen",
  "conflict.why": {
    one: "Jemand anderes hat eine Stelle korrigiert, die auch hier geändert ist. Welche Fassung soll bleiben?",
    other:
      "Jemand anderes hat {count} Stellen korrigiert, die auch hier geändert sind. Welche Fassungen sollen bleiben?",
  },
  "conflict.at": "Bei {time}",
  "conflict.mine": "Meine behalten",
  "conflict.theirs": "Andere übernehmen",
  "conflict.allMine": "Alle meine behalten",
  "conflict.allTheirs": "Alle anderen übernehmen",
  "conflict.removed": "Gelöscht",
  "conflict.copy": "Meine Fassung als Kopie behalten",
  "conflict.open": { one: "Eine Stelle ist offen", other: "{count} Stellen sind offen" },
  "conflict.later": "Später entscheiden",
  "conflict.save": "Speichern",
  "undo.text": "Text ändern",
  "undo.times": "Zeiten ändern",
  "undo.speaker": "Sprecher ändern",
  "undo.split": "Segment teilen",
  "undo.join": "Segmente verbinden",
  "undo.insert": "Segment einfügen",
  "undo.remove": "Segment löschen",
  "undo.replace": "Text ersetzen",
  "undo.theirs": "Korrekturen zusammenführen",

  // Downloads and revisions

  // The fleet
};

export default texts;
