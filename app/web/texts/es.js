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
  "transcript.label": "Transcripción",
  "transcript.playFrom": "Reproducir desde {time}",
  "transcript.growing": "El resto del texto aparecerá a medida que se transcriba.",
  "transcript.waiting": "El texto aparece aquí mientras se transcribe la grabación.",
  "transcript.silent": "Nadie habla en esta grabación.",
  "transcript.none": "No hay texto.",
  "transcript.failed": "No se pudo transcribir de {start} a {end}.",
  "transcript.backToPlaying": "Volver a lo que suena",
  "keys.next": "Segmento siguiente",
  "keys.previous": "Segmento anterior",
  "keys.edit": "Editar el segmento, o terminar",
  "keys.leave": "Terminar de editar",
  "keys.split": "Al editar: dividir en el cursor",
  "keys.join": "Al principio del texto: unir con el segmento anterior",
  "keys.editNext": "Al editar: ir al segmento siguiente",
  "keys.remove": "Eliminar el segmento",
  "find.open": "Buscar",
  "find.query": "Buscar",
  "find.replacement": "Reemplazar por",
  "find.none": "Sin resultados",
  "find.count": { one: "{count} resultado", other: "{count} resultados" },
  "find.place": "{at} de {count}",
  "find.previous": "Resultado anterior",
  "find.next": "Resultado siguiente",
  "find.matchCase": "Distinguir mayúsculas",
  "find.wholeWord": "Palabras completas",
  "find.replaceMode": "Buscar y reemplazar",
  "find.replace": "Reemplazar",
  "find.replaceAll": "Reemplazar todo",
  "find.replaced": { one: "{count} lugar reemplazado.", other: "{count} lugares reemplazados." },

  // Player

  // Corrections
  "edit.toolbar": "Correcciones",
  "edit.control": "Ctrl",
  "edit.edit": "Editar texto",
  "edit.more": "Más acciones",
  "edit.times": "Cambiar tiempos",
  "edit.setSpeaker": "Indicar hablante",
  "edit.split": "Dividir",
  "edit.splitHere": "Dividir aquí",
  "edit.join": "Unir con el siguiente",
  "edit.insert": "Insertar después",
  "edit.remove": "Eliminar",
  "edit.removed": "Segmento eliminado.",
  "edit.done": "Listo",
  "edit.text": "Texto del segmento",
  "edit.start": "Inicio",
  "edit.end": "Fin",
  "edit.speaker": "Hablante",
  "edit.noTime": "Esto no es un tiempo. Escríbelo así: 1:02.50.",
  "edit.timeKeys": "Las flechas arriba y abajo lo cambian 0,1 s; con Mayús, 1 s",
  "edit.noSplit": "Este segmento no se puede dividir ahí. Coloca el cursor entre dos palabras.",
  "edit.noSpace": "No hay tiempo libre entre estos segmentos. Acorta antes uno de ellos.",
  "edit.undo": "Deshacer",
  "edit.redo": "Rehacer",
  "edit.undone": "Deshecho.",
  "edit.redone": "Rehecho.",
  "edit.nextUnsure": "Siguiente palabra dudosa",
  "edit.previousUnsure": "Palabra dudosa anterior",
  "edit.unsure": "Palabra dudosa: {word}",
  "edit.noUnsure": "Ninguna palabra está marcada como dudosa.",
  "edit.save": "Guardar",
  "edit.saved": "Guardado",
  "edit.saving": "Guardando…",
  "edit.unsaved": "Cambios sin guardar",
  "edit.savedLater": "Los cambios se guardan cuando termine el trabajo",
  "edit.offline": "Sin conexión: los cambios quedan en este navegador",
  "edit.conflict": "Otra persona ha cambiado la transcripción",
  "edit.showPlace": "Mostrar",

  // Downloads and revisions

  // The fleet
};

export default texts;
