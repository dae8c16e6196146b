/** Spanish. */

/** @type {Record<import("../core/text.js").TextKey, string | Record<string, string>>} */
const texts = {
  // Everywhere
  cancel: "Cancelar",
  close: "Cerrar",
  loading: "Cargando…",
  demo: "Este servicio usa el modelo de demostración. Solo entiende la voz sintética de sus ejemplos.",
  "error.unreachable": "No se puede acceder al servicio. Comprueba que funciona y que hay conexión.",
  "error.status": "El servidor respondió con el estado {status}. Inténtalo más tarde.",

  // Frame
  "nav.label": "Páginas",
  "nav.skip": "Ir al contenido",
  "nav.transcripts": "Transcripciones",
  "nav.fleet": "Flota",
  "help.title": "Teclas",
  "help.open": "Lista de teclas",
  "help.transcripts": "Todas las transcripciones",
  "help.fleet": "La flota",
  "key.space": "Espacio",
  "key.title": "Clave de API",
  "key.why": "Este servicio pide una clave. El navegador la guarda y solo la envía a este servicio.",
  "key.label": "Clave",
  "key.wrong": "El servicio no conoce esta clave. Compruébala o pregunta a quien lo administra.",
  "key.use": "Usar clave",
  "settings.title": "Ajustes",
  "settings.language": "Idioma de esta página",
  "settings.theme": "Colores",
  "settings.automatic": "Automático",
  "settings.light": "Claro",
  "settings.dark": "Oscuro",
  "settings.forgetKey": "Olvidar la clave de API",
  "settings.docs": "Documentación de la API",

  // New recordings

  // All transcripts

  // A transcript
  "job.unavailable": "No se puede mostrar esta transcripción",
  "job.all": "Todas las transcripciones",

  // Player

  // Corrections

  // Downloads and revisions

  // The fleet
  "fleet.live": "En directo",
  "fleet.connecting": "Conectando …",
  "fleet.lost": "Conexión perdida, reconectando …",
  "fleet.asTable": "Ver como tabla",
  "fleet.none": "Este servicio no tiene procesos de trabajo. Consulta el registro de su arranque.",
  "fleet.ready": "Procesos listos",
  "fleet.readyOf": "{ready} de {all}",
  "fleet.busyCount": { one: "{count} ocupado", other: "{count} ocupados" },
  "fleet.down": { one: "{count} fuera de servicio", other: "{count} fuera de servicio" },
  "fleet.speed": "Velocidad, × tiempo real",
  "fleet.audioPerMinute": "{time} de audio por minuto",
  "fleet.queue": "Cola",
  "fleet.clips": { one: "{shown} fragmento", other: "{shown} fragmentos" },
  "fleet.jobs": { one: "{count} trabajo más en espera", other: "{count} trabajos más en espera" },
  "fleet.noJobs": "ningún trabajo más en espera",
  "fleet.nothingWaits": "nada espera",
  "fleet.oldest": "Fragmento más antiguo",
  "fleet.oldestNote": "espera un proceso libre",
  "fleet.lanes": "Procesos",
  "fleet.worker": "Proceso {slot}",
  "fleet.state.idle": "Listo",
  "fleet.state.busy": "Ocupado",
  "fleet.state.loading": "Cargando el modelo",
  "fleet.state.asleep": "En reposo",
  "fleet.state.restarting": "Reiniciando",
  "fleet.state.quarantined": "En cuarentena",
  "fleet.state.failed": "Averiado",
  "fleet.restarts": { one: "{count} reinicio", other: "{count} reinicios" },
  "fleet.limited": "limitado",
  "fleet.noReason": "El proceso ha fallado.",
  "fleet.nextRestarting": "Arranca un proceso nuevo. Sus fragmentos se repiten.",
  "fleet.nextQuarantined":
    "Se prueba de nuevo al menos una vez por minuto y vuelve a trabajar cuando la prueba sale bien. Los demás hacen su trabajo.",
  "fleet.nextFailed": "Se arranca de nuevo al menos una vez por minuto. Los demás hacen su trabajo.",
  "fleet.memory": "Memoria de la GPU",
  "fleet.memoryOf": "{used} / {total} GB",
  "fleet.utilisation": "Uso de la GPU",
  "fleet.timeline":
    "Trabajo del proceso {slot} en los últimos cinco minutos. Las flechas recorren sus bloques y los procesos.",
  "fleet.noBlocks": "Este proceso no ha hecho nada en los últimos cinco minutos.",
  "fleet.minutesAgo": "−{count} min",
  "fleet.now": "ahora",
  "fleet.legend": "Trabajos de los últimos cinco minutos",
  "fleet.noWork": "Sin trabajo en los últimos cinco minutos.",
  "fleet.direct": "Peticiones directas",
  "fleet.deleted": "Trabajo eliminado",
  "fleet.moreJobs": { one: "{count} más", other: "{count} más" },
  "fleet.fewerJobs": "Ver menos",
  "fleet.running": "desde hace {time}",
  "fleet.blockFacts": "{audio} de audio en {time}, {speed} tiempo real",
  "fleet.outcome.failed": "Fallido",
  "fleet.outcome.requeued": "Devuelto a la cola",
  "fleet.table": "Los procesos de la flota",
  "fleet.column.worker": "Proceso",
  "fleet.column.device": "Dispositivo",
  "fleet.column.model": "Modelo",
  "fleet.column.state": "Estado",
  "fleet.column.working": "Trabaja en",
  "fleet.column.clips": "Fragmentos en 5 min",
  "fleet.column.lost": "Fallidos / devueltos a la cola",
  "fleet.column.gpu": "GPU",
  "fleet.column.restarts": "Reinicios",
  "fleet.seconds": "{s} s",
  "fleet.minutes": "{min} min {s} s",
  "fleet.hours": "{h} h {min} min",
};

export default texts;
