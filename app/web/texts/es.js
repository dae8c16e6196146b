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
  "player.label": "Reproductor",
  "player.play": "Reproducir",
  "player.pause": "Pausar",
  "player.playOrPause": "Reproducir o pausar",
  "player.back5": "Retroceder 5 segundos",
  "player.forward5": "Avanzar 5 segundos",
  "player.back1": "Retroceder 1 segundo",
  "player.forward1": "Avanzar 1 segundo",
  "player.slower": "Más lento",
  "player.faster": "Más rápido",
  "player.rate": "Velocidad",
  "player.loop": "Repetir el segmento",
  "player.mute": "Silenciar",
  "player.volume": "Volumen",
  "player.captions": "Subtítulos",
  "player.pictureInPicture": "Ventana pequeña",
  "player.fullscreen": "Pantalla completa",
  "player.zoomIn": "Ampliar la forma de onda",
  "player.zoomOut": "Reducir la forma de onda",
  "player.more": "Más del reproductor",
  "player.skipsBack": "Tras una pausa, retroceder 1,5 segundos",
  "player.position": "Posición",
  "player.positionOf": "{time} de {duration}",
  "player.preparing": "Se está preparando el sonido …",
  "player.waiting": "La grabación se está descargando. Después se podrá reproducir.",
  "player.unplayable": "Este navegador no puede reproducir ni la grabación ni una copia. Prueba otro navegador o descarga la grabación.",
  "player.retry": "Reintentar",

  // Corrections

  // Downloads and revisions

  // The fleet
};

export default texts;
