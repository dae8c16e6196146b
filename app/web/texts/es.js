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
  "saving.saved": "Guardado",
  "saving.saving": "Guardando …",
  "saving.unsaved": "Aún sin guardar",
  "saving.later": "Las correcciones se guardan cuando termine el trabajo",
  "saving.offline": "No se puede acceder al servicio. Las correcciones están a salvo en este navegador",
  "saving.conflict": "Otra persona ha corregido los mismos lugares",
  "saving.refused": "Sin guardar",
  "saving.now": "Guardar",
  "saving.choose": "Elegir",
  "saving.copy": "Descargar mi versión",
  "saving.dismiss": "Descartar",
  "saving.merged": "Las correcciones hechas en otro lugar se han unido a las propias",
  "saving.restored": "Las correcciones sin guardar han vuelto",
  "saving.gone": "El trabajo se eliminó antes de guardar las correcciones. Descárgalas para conservarlas.",
  "saving.jobFailed":
    "El trabajo no tiene resultado y por eso no admite correcciones. Descarga tu versión para conservarla.",
  "saving.lostTitle": "Correcciones sin lugar",
  "saving.lost": {
    one: "El texto ha cambiado y una corrección ya no tiene lugar en él. Descárgala para conservarla.",
    other:
      "El texto ha cambiado y {count} correcciones ya no tienen lugar en él. Descárgalas para conservarlas.",
  },
  "conflict.title": "Dos versiones",
  "conflict.why": {
    one: "Otra persona ha corregido un lugar que también se ha cambiado aquí. Elige qué versión se queda.",
    other:
      "Otra persona ha corregido {count} lugares que también se han cambiado aquí. Elige qué versiones se quedan.",
  },
  "conflict.at": "En {time}",
  "conflict.mine": "Conservar la mía",
  "conflict.theirs": "Tomar la otra",
  "conflict.allMine": "Conservar todas las mías",
  "conflict.allTheirs": "Tomar todas las otras",
  "conflict.removed": "Eliminado",
  "conflict.copy": "Conservar la mía como copia",
  "conflict.open": { one: "Queda un lugar por decidir", other: "Quedan {count} lugares por decidir" },
  "conflict.later": "Decidir más tarde",
  "conflict.save": "Guardar",
  "undo.text": "Cambiar texto",
  "undo.times": "Cambiar tiempos",
  "undo.speaker": "Cambiar hablante",
  "undo.split": "Dividir segmento",
  "undo.join": "Unir segmentos",
  "undo.insert": "Insertar segmento",
  "undo.remove": "Eliminar segmento",
  "undo.replace": "Reemplazar texto",
  "undo.theirs": "Unir correcciones",

  // Downloads and revisions

  // The fleet
};

export default texts;
