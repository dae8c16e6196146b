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
};

export default texts;
