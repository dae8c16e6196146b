"""What belongs to a number: the dot of an ordinal, and the noun before it. Units after it are in `units`.

Unicode CLDR 48 (npm package cldr-rbnf, licence Unicode-3.0) writes an ordinal with a dot in each language
that has no rule of its own. Listed are those of them whose orthography does prescribe the dot. The nouns
are written for this project.
"""

from app.transcript.lexicon.words import word_sets

_ORDINAL_DOT = "bs cs da de et eu fi fo hr hu is lb lv mk nn no pl sk sl sr tr"
_ORDINAL_DOT_LANGUAGES = frozenset(_ORDINAL_DOT.split())

_INTERNATIONAL = "no nr n° nº № § §§ # p pp vol fig"
_NOUNS = {
    "ar": """
        رقم صفحة الصفحة ص فصل الفصل غرفة الغرفة المادة مادة القسم الجزء الطابق عام سنة الساعة البند الباب
        قناة
    """,
    "bg": "номер № стр страница глава стая член раздел част том версия етаж канал алинея ред",
    "ca": "número núm pàgina pàg capítol sala habitació article secció part versió volum carrer",
    "cs": """
        číslo č čís strana straně stranu str kapitola kapitole kapitolu kap pokoj článek čl oddíl paragraf
        část verze
        kanál svazek rok roku roce
    """,
    "da": """
        nummer nr side kapitel kap værelse lokale afsnit artikel paragraf del version bind kanal kl klokken
        år
    """,
    "de": """
        nummer nr nrn seite s kapitel kap zimmer raum artikel art paragraf paragraph absatz abs abschnitt
        ziffer teil
        band version kanal linie gleis punkt tabelle abbildung abb folge staffel jahr halle platz
    """,
    "el": """
        αριθμός αριθμό αρ σελίδα σελ κεφάλαιο κεφ δωμάτιο άρθρο τμήμα μέρος τόμος τόμο έκδοση κανάλι
        παράγραφος οδός
    """,
    "en": """
        number numbers nos nr page pages chapter ch room section sec article art part volume version figure
        table
        paragraph clause item step level grade episode season channel route highway flight gate platform
        track floor
        apartment apt suite unit line question exercise lesson phase stage round act scene psalm verse
    """,
    "es": """
        número núm página pág págs capítulo cap habitación sala sección sec artículo art parte tomo volumen
        versión
        figura tabla párrafo nivel episodio temporada canal ruta vuelo puerta piso línea calle paso año
    """,
    "et": "number nr lk lehekülg peatükk tuba artikkel osa versioon paragrahv",
    "fa": "شماره شمارهٔ صفحه صفحهٔ فصل بخش اتاق ماده مادهٔ بند نسخه نسخهٔ کانال سال ساعت طبقه طبقهٔ قسمت جلد",
    "fi": """
        numero nro sivu sivulla sivulta s luku luvussa huone artikla pykälä kohta osa versio kanava taso
        vuonna klo
        kello
    """,
    "fr": """
        numéro n no page pages chapitre chap chambre salle section article art partie tome volume version
        figure
        tableau paragraphe niveau épisode saison chaîne route vol porte quai étage ligne étape acte scène
        question
    """,
    "he": """
        מספר מס' עמוד עמ' פרק חדר סעיף חלק כרך גרסה גרסת ערוץ קומה דירה שלב תרגיל שאלה שורה רחוב כביש שנת
        בשנת בשעה
    """,
    "hi": "नंबर नम्बर संख्या पृष्ठ पेज अध्याय कमरा धारा अनुच्छेद खंड भाग संस्करण सन सन् चैनल मंजिल",
    "hr": """
        broj br stranica stranici stranicu str poglavlje poglavlju soba sobi članak članku čl dio verzija
        kanal točka
        svezak
    """,
    "hu": "szám sz oldal fejezet szoba cikk bekezdés paragrafus",
    "id": """
        nomor nomer no halaman hal hlm bab kamar ruang pasal ayat bagian jilid versi lantai jalur tahun
        pukul jam
    """,
    "it": """
        numero n num pagina pag pagg capitolo cap camera stanza sala sezione articolo art parte tomo volume
        versione
        figura tabella paragrafo livello episodio stagione canale strada volo binario piano linea passo
        comma
    """,
    "ko": "제 번호 페이지 서기 기원전 오전 오후",
    "ms": "nombor no halaman bab bilik seksyen artikel bahagian jilid versi tingkat tahun pukul jam bil",
    "nl": """
        nummer nr pagina blz pag hoofdstuk kamer zaal artikel art sectie deel versie kanaal lijn spoor
        perron
        verdieping paragraaf vraag stap niveau aflevering seizoen tabel figuur jaar
    """,
    "no": """
        nummer nr side kapittel kap rom seksjon artikkel paragraf avsnitt del versjon bind kanal linje kl
        klokken år
    """,
    "pl": """
        numer numeru numerem nr strona stronie stronę str s rozdział rozdziale pokój pokoju sala sali
        artykuł art
        paragraf ustęp punkt pkt część części tom wersja kanał piętro linia rok roku
    """,
    "pt": """
        número núm página pág págs capítulo cap quarto sala seção secção artigo art parte tomo volume
        versão figura
        tabela parágrafo nível episódio temporada canal rota voo portão andar linha passo rua ano
    """,
    "ro": """
        numărul număr nr pagina pag capitolul cap camera sala secțiunea articolul art partea volumul
        versiunea
        figura tabelul paragraful nivelul episodul sezonul canalul etajul linia anul alineatul
    """,
    "ru": """
        номер номера номером № страница странице страницу страницы стр с глава главе главу главы комната
        комнате
        комнату статья статье статью статьи ст раздел разделе пункт пункте п параграф часть части том томе
        версия
        версии канал этаж этаже рисунок рис таблица табл квартира кв дом д кабинет палата
    """,
    "sk": """
        číslo č čís strana strane stranu str kapitola kapitole kap izba článok čl oddiel paragraf časť
        verzia kanál
        zväzok rok roku
    """,
    "sv": """
        nummer nr sida sidan sid s kapitel kap rum sal avsnitt artikel paragraf del version band kanal
        linje spår
        våning fråga steg nivå säsong kl klockan år
    """,
    "tr": "numara numaralı no sayfa bölüm oda madde kısım cilt sürüm kanal kat peron saat sıra",
    "uk": """
        номер номера номером № сторінка сторінці сторінку стор с розділ розділі кімната кімнаті стаття
        статті статтю
        ст пункт пункті п параграф частина частині том томі версія версії канал поверх поверсі рисунок рис
        таблиця
        табл квартира кв будинок буд кабінет палата
    """,
    "ur": "نمبر صفحہ باب کمرہ دفعہ آرٹیکل حصہ جلد سن چینل",
    "vi": """
        số trang chương phòng điều khoản mục phần tập quyển phiên bản kênh tầng lầu đường tháng ngày năm
        thứ quận
    """,
}

_GENERAL = frozenset(_INTERNATIONAL.split())
_SETS = {language: words | _GENERAL for language, words in word_sets(_NOUNS).items()}
_SETS["bs"], _SETS["nn"] = _SETS["hr"], _SETS["no"]


def writes_ordinals_with_dot(language: str) -> bool:
    """Whether the language writes "fifth" as `5.`, so that the dot need not end a sentence."""
    return language in _ORDINAL_DOT_LANGUAGES


def nouns_before_numbers(language: str) -> frozenset[str]:
    """Words that a number follows and completes, such as `page` in "page 14", without a final dot.

    A language without a list has the international ones only.
    """
    return _SETS.get(language, _GENERAL)
