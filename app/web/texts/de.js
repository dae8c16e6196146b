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

  // Corrections

  // Downloads and revisions

  // The fleet
  "fleet.live": "Live",
  "fleet.connecting": "Verbindung wird hergestellt …",
  "fleet.lost": "Verbindung verloren, wird neu hergestellt …",
  "fleet.asTable": "Als Tabelle zeigen",
  "fleet.none": "Dieser Dienst hat keine Worker. Im Protokoll seines Starts steht, warum.",
  "fleet.ready": "Worker bereit",
  "fleet.readyOf": "{ready} von {all}",
  "fleet.busyCount": "{count} beschäftigt",
  "fleet.down": { one: "{count} außer Betrieb", other: "{count} außer Betrieb" },
  "fleet.speed": "Tempo, × Echtzeit",
  "fleet.audioPerMinute": "{time} Ton pro Minute",
  "fleet.queue": "Warteschlange",
  "fleet.clips": { one: "{shown} Clip", other: "{shown} Clips" },
  "fleet.jobs": { one: "{count} weiterer Auftrag wartet", other: "{count} weitere Aufträge warten" },
  "fleet.noJobs": "keine weiteren Aufträge",
  "fleet.nothingWaits": "nichts wartet",
  "fleet.oldest": "Ältester Clip",
  "fleet.oldestNote": "wartet auf einen Worker",
  "fleet.lanes": "Worker",
  "fleet.worker": "Worker {slot}",
  "fleet.state.idle": "Bereit",
  "fleet.state.busy": "Beschäftigt",
  "fleet.state.loading": "Lädt das Modell",
  "fleet.state.asleep": "Schläft",
  "fleet.state.restarting": "Startet neu",
  "fleet.state.quarantined": "In Quarantäne",
  "fleet.state.failed": "Ausgefallen",
  "fleet.restarts": { one: "{count} Neustart", other: "{count} Neustarts" },
  "fleet.limited": "eingeschränkt",
  "fleet.noReason": "Der Worker ist ausgefallen.",
  "fleet.nextRestarting": "Ein neuer Prozess startet. Seine Clips werden wiederholt.",
  "fleet.nextQuarantined":
    "Er wird mindestens einmal pro Minute erneut geprüft und arbeitet weiter, sobald eine Prüfung gelingt. Seine Arbeit tun die anderen.",
  "fleet.nextFailed": "Er wird mindestens einmal pro Minute neu gestartet. Seine Arbeit tun die anderen.",
  "fleet.memory": "Speicher der GPU",
  "fleet.memoryOf": "{used} / {total} GB",
  "fleet.utilisation": "Auslastung der GPU",
  "fleet.timeline":
    "Arbeit von Worker {slot} in den letzten fünf Minuten. Die Pfeiltasten wechseln zwischen seinen Blöcken und den Workern.",
  "fleet.noBlocks": "Dieser Worker hat in den letzten fünf Minuten nichts getan.",
  "fleet.minutesAgo": "−{count} min",
  "fleet.now": "jetzt",
  "fleet.legend": "Aufträge der letzten fünf Minuten",
  "fleet.noWork": "Keine Arbeit in den letzten fünf Minuten.",
  "fleet.direct": "Direkte Anfragen",
  "fleet.deleted": "Gelöschter Auftrag",
  "fleet.moreJobs": { one: "{count} weiterer", other: "{count} weitere" },
  "fleet.fewerJobs": "Weniger zeigen",
  "fleet.running": "seit {time}",
  "fleet.blockFacts": "{audio} Ton in {time}, {speed} Echtzeit",
  "fleet.outcome.failed": "Fehlgeschlagen",
  "fleet.outcome.requeued": "Erneut eingereiht",
  "fleet.table": "Die Worker der Flotte",
  "fleet.column.worker": "Worker",
  "fleet.column.device": "Gerät",
  "fleet.column.model": "Modell",
  "fleet.column.state": "Zustand",
  "fleet.column.working": "Arbeitet an",
  "fleet.column.clips": "Clips in 5 min",
  "fleet.column.lost": "Fehlgeschlagen / erneut eingereiht",
  "fleet.column.gpu": "GPU",
  "fleet.column.restarts": "Neustarts",
  "fleet.seconds": "{s} s",
  "fleet.minutes": "{min} min {s} s",
  "fleet.hours": "{h} h {min} min",
};

export default texts;
