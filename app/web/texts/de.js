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

  // Player

  // Corrections

  // Downloads and revisions

  // The fleet
};

export default texts;
