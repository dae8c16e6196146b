"""What belongs to a number: the dot of an ordinal, the word before it; numerals. Units are in `units`.

Unicode CLDR 48 (npm package cldr-rbnf, licence Unicode-3.0) writes an ordinal with a dot in each language
that has no rule of its own. Listed are those of them whose orthography does prescribe the dot. The other
lists are written for this project.
"""

from app.transcript.lexicon.words import word_sets

_ORDINAL_DOT = "bs cs da de et eu fi fo hr hu is lb lv mk nn no pl sk sl sr tr"
_ORDINAL_DOT_LANGUAGES = frozenset(_ORDINAL_DOT.split())

_INTERNATIONAL = "ca no nr n° nº № § §§ # p pp vol fig"
_NOUNS = {
    "ar": """
        رقم صفحة الصفحة ص فصل الفصل غرفة الغرفة المادة مادة القسم الجزء الطابق عام سنة الساعة البند الباب
        قناة
        القرن قرن حوالي نحو قرابة تقريبا زهاء
    """,
    "bg": """
        номер № стр страница глава стая член раздел част том версия етаж канал алинея ред около
        приблизително минус век
    """,
    "ca": """
        número núm pàgina pàg capítol sala habitació article secció part versió volum carrer
        aproximadament uns unes segle dia any
    """,
    "cs": """
        číslo č čís strana straně stranu str kapitola kapitole kapitolu kap pokoj článek čl oddíl paragraf
        část verze
        kanál svazek rok roku roce
        přibližně asi zhruba cca kolem minus století dne
    """,
    "da": """
        nummer nr side kapitel kap værelse lokale afsnit artikel paragraf del version bind kanal kl klokken
        år
        cirka omkring ungefær minus
    """,
    "de": """
        nummer nr nrn seite s kapitel kap zimmer raum artikel art paragraf paragraph absatz abs abschnitt
        ziffer teil
        band version kanal linie gleis punkt tabelle abbildung abb folge staffel jahr halle platz
        etwa circa rund ungefähr knapp mindestens höchstens minus plus
    """,
    "el": """
        αριθμός αριθμό αρ σελίδα σελ κεφάλαιο κεφ δωμάτιο άρθρο τμήμα μέρος τόμος τόμο έκδοση κανάλι
        παράγραφος οδός
        περίπου μείον
    """,
    "en": """
        number numbers nos nr page pages chapter ch room section sec article art part volume version figure
        table
        paragraph clause item step level grade episode season channel route highway flight gate platform
        track floor
        apartment apt suite unit line question exercise lesson phase stage round act scene psalm verse
        approximately roughly circa about around minus plus nearly age aged
    """,
    "es": """
        número núm página pág págs capítulo cap habitación sala sección sec artículo art parte tomo volumen
        versión
        figura tabla párrafo nivel episodio temporada canal ruta vuelo puerta piso línea calle paso año
        n.º n.ª unos unas aproximadamente siglo día menos
    """,
    "et": """
        number nr lk lehekülg peatükk tuba artikkel osa versioon paragrahv umbes ligikaudu miinus
    """,
    "fa": """
        شماره شمارهٔ صفحه صفحهٔ فصل بخش اتاق ماده مادهٔ بند نسخه نسخهٔ کانال سال ساعت طبقه طبقهٔ
        قسمت جلد حدود تقریبا تقریباً قرن
    """,
    "fi": """
        numero nro sivu sivulla sivulta s luku luvussa huone artikla pykälä kohta osa versio kanava taso
        vuonna klo
        kello
        noin suunnilleen miinus
    """,
    "fr": """
        numéro n no page pages chapitre chap chambre salle section article art partie tome volume version
        figure
        tableau paragraphe niveau épisode saison chaîne route vol porte quai étage ligne étape acte scène
        question
        environ approximativement moins siècle
    """,
    "he": """
        מספר מס' עמוד עמ' פרק חדר סעיף חלק כרך גרסה גרסת ערוץ קומה דירה שלב תרגיל שאלה שורה רחוב כביש שנת
        בשנת בשעה
        כ
    """,
    "hi": """
        नंबर नम्बर संख्या पृष्ठ पेज अध्याय कमरा धारा अनुच्छेद खंड भाग संस्करण सन सन् चैनल मंजिल लगभग
        करीब क़रीब तकरीबन सुबह शाम रात दोपहर
    """,
    "hr": """
        broj br stranica stranici stranicu str poglavlje poglavlju soba sobi članak članku čl dio verzija
        kanal točka
        svezak
        oko otprilike minus
    """,
    "hu": """
        szám sz oldal fejezet szoba cikk bekezdés paragrafus kb körülbelül mínusz
    """,
    "id": """
        nomor nomer no halaman hal hlm bab kamar ruang pasal ayat bagian jilid versi lantai jalur tahun
        pukul jam
        sekitar kira-kira abad
    """,
    "it": """
        numero n num pagina pag pagg capitolo cap camera stanza sala sezione articolo art parte tomo volume
        versione
        figura tabella paragrafo livello episodio stagione canale strada volo binario piano linea passo
        comma
        circa meno anno secolo giorno via
    """,
    "ko": """
        제 번호 페이지 서기 기원전 오전 오후 약 대략 새벽 저녁 밤 아침
    """,
    "ms": """
        nombor no halaman bab bilik seksyen artikel bahagian jilid versi tingkat tahun pukul jam bil
        sekitar lebih-kurang abad
    """,
    "nl": """
        nummer nr pagina blz pag hoofdstuk kamer zaal artikel art sectie deel versie kanaal lijn spoor
        perron
        verdieping paragraaf vraag stap niveau aflevering seizoen tabel figuur jaar
        ongeveer circa ruim minstens minus
    """,
    "no": """
        nummer nr side kapittel kap rom seksjon artikkel paragraf avsnitt del versjon bind kanal linje kl
        klokken år
        cirka omkring omtrent minus
    """,
    "pl": """
        numer numeru numerem nr strona stronie stronę str s rozdział rozdziale pokój pokoju sala sali
        artykuł art
        paragraf ustęp punkt pkt część części tom wersja kanał piętro linia rok roku
        około ponad prawie dniu dnia wieku minus godzina godzinie godz ul
    """,
    "pt": """
        número núm página pág págs capítulo cap quarto sala seção secção artigo art parte tomo volume
        versão figura
        tabela parágrafo nível episódio temporada canal rota voo portão andar linha passo rua ano
        n.º n.ª aproximadamente século dia menos cerca
    """,
    "ro": """
        numărul număr nr pagina pag capitolul cap camera sala secțiunea articolul art partea volumul
        versiunea
        figura tabelul paragraful nivelul episodul sezonul canalul etajul linia anul alineatul
        aproximativ circa secolul
    """,
    "ru": """
        номер номера номером № страница странице страницу страницы стр с глава главе главу главы комната
        комнате
        комнату статья статье статью статьи ст раздел разделе пункт пункте п параграф часть части том томе
        версия
        версии канал этаж этаже рисунок рис таблица табл квартира кв дом д кабинет палата
        около примерно приблизительно минус ровно ул
    """,
    "sk": """
        číslo č čís strana strane stranu str kapitola kapitole kap izba článok čl oddiel paragraf časť
        verzia kanál
        zväzok rok roku
        približne asi okolo cca mínus storočí dňa
    """,
    "sv": """
        nummer nr sida sidan sid s kapitel kap rum sal avsnitt artikel paragraf del version band kanal
        linje spår
        våning fråga steg nivå säsong kl klockan år
        cirka ungefär omkring minus
    """,
    "tr": """
        numara numaralı no sayfa bölüm oda madde kısım cilt sürüm kanal kat peron saat sıra yüzde
        yaklaşık saati saatte eksi yıl
    """,
    "uk": """
        номер номера номером № сторінка сторінці сторінку стор с розділ розділі кімната кімнаті стаття
        статті статтю
        ст пункт пункті п параграф частина частині том томі версія версії канал поверх поверсі рисунок рис
        таблиця
        табл квартира кв будинок буд кабінет палата
        близько приблизно мінус рівно вул
    """,
    "ur": """
        نمبر صفحہ باب کمرہ دفعہ آرٹیکل حصہ جلد سن چینل تقریبا تقریباً صبح شام
    """,
    "ja": "第 約 およそ 午前 午後 西暦 昭和 平成 令和",
    "th": "เวลา วันที่ ปี ประมาณ หน้า บทที่ ราคา พ.ศ ค.ศ ข้อ ชั้น ห้อง",
    "yue": "第 大約 約 上晝 下晝 夜晚",
    "zh": "第 大约 大約 约 約 上午 下午 晚上 凌晨 早上 中午 公元 共 一共",
    "vi": """
        số trang chương phòng điều khoản mục phần tập quyển phiên bản kênh tầng lầu đường tháng ngày năm
        thứ quận
        khoảng lúc
    """,
}

# The numerals that often stand before a unit: "three days". Those of one may be articles.
_NUMBER_WORDS = {
    "ar": """
        ثلاث ثلاثة أربع أربعة خمس خمسة ست ستة سبع سبعة ثمان ثماني ثمانية تسع تسعة عشر عشرة عشرون عشرين ثلاثون
        ثلاثين أربعون أربعين خمسون خمسين ستون ستين سبعون سبعين ثمانون ثمانين تسعون تسعين مئة مائة ألف
    """,
    "bg": "два две три четири пет шест седем осем девет десет двадесет тридесет сто двеста хиляда",
    "ca": "dos dues tres quatre cinc sis set vuit nou deu quinze vint trenta quaranta cinquanta cent",
    "cs": "dva dvě tři čtyři pět šest sedm osm devět deset patnáct dvacet třicet čtyřicet padesát sto pár",
    "da": "to tre fire fem seks syv otte ni ti tolv femten tyve tredive fyrre halvtreds hundrede par",
    "de": """
        zwei drei vier fünf sechs sieben acht neun zehn elf zwölf fünfzehn zwanzig dreißig vierzig fünfzig
        sechzig siebzig achtzig neunzig hundert tausend paar
    """,
    "el": """
        δύο δυο τρεις τρία τέσσερα τέσσερις πέντε έξι επτά εφτά οκτώ οχτώ εννέα εννιά δέκα είκοσι
        τριάντα εκατό
    """,
    "en": """
        two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    """,
    "es": """
        dos tres cuatro cinco seis siete ocho nueve diez once doce quince veinte treinta cuarenta cincuenta
        sesenta setenta ochenta noventa cien
    """,
    "et": "kaks kolm neli viis kuus seitse kaheksa üheksa kümme kakskümmend sada",
    "fa": "دو سه چهار پنج شش هفت هشت نه ده بیست سی چهل پنجاه شصت هفتاد هشتاد نود صد چند",
    "fi": "kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän kymmenen kaksikymmentä sata",
    "fr": """
        deux trois quatre cinq six sept huit neuf dix onze douze quinze vingt trente quarante cinquante
        soixante cent
    """,
    "he": """
        שני שתי שלוש שלושה ארבע ארבעה חמש חמישה שש שישה שבע שבעה שמונה תשע תשעה עשר עשרה עשרים שלושים ארבעים
        חמישים שישים שבעים שמונים תשעים מאה
    """,
    "hi": "दो तीन चार पाँच पांच छह छः सात आठ नौ दस बीस तीस चालीस पचास साठ सत्तर अस्सी नब्बे सौ कुछ",
    "hr": "dva dvije tri četiri pet šest sedam osam devet deset petnaest dvadeset trideset sto par",
    "hu": "két három négy öt hat hét nyolc kilenc tíz húsz harminc negyven ötven száz pár",
    "id": "dua tiga empat lima enam tujuh delapan sembilan sepuluh belas puluh",
    "it": """
        due tre quattro cinque sei sette otto nove dieci dodici quindici venti trenta quaranta cinquanta
        sessanta settanta ottanta novanta
    """,
    "ko": "하나 한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 스무 몇 백 천 만 억 이천 삼천",
    "ms": "dua tiga empat lima enam tujuh lapan sembilan sepuluh belas puluh",
    "nl": """
        twee drie vier vijf zes zeven acht negen tien elf twaalf vijftien twintig dertig veertig
        vijftig paar
    """,
    "no": "to tre fire fem seks sju syv åtte ni ti tolv femten tjue tretti førti femti par",
    "pl": """
        dwa dwie dwóch trzy trzech cztery czterech pięć pięciu sześć siedem osiem dziewięć dziesięć
        piętnaście dwadzieścia trzydzieści czterdzieści pięćdziesiąt sto kilka kilku parę
    """,
    "pt": """
        dois duas três quatro cinco seis sete oito nove dez doze quinze vinte trinta quarenta cinquenta
        sessenta setenta oitenta noventa cem
    """,
    "ro": "doi două trei patru cinci șase șapte opt nouă zece douăzeci treizeci o",
    "ru": """
        два две двух три трёх трех четыре четырёх пять пяти шесть семь восемь девять десять десяти пятнадцать
        двадцать тридцать сорок пятьдесят шестьдесят сто двести триста несколько полтора полторы пару
    """,
    "sk": "dva dve tri štyri päť šesť sedem osem deväť desať pätnásť dvadsať tridsať sto pár",
    "sv": "två tre fyra fem sex sju åtta nio tio tolv femton tjugo trettio fyrtio femtio par",
    "th": "หนึ่ง สอง สาม สี่ ห้า หก เจ็ด แปด เก้า สิบ หลาย กี่",
    "tr": """
        iki üç dört beş altı yedi sekiz dokuz on yirmi otuz kırk elli altmış yetmiş seksen doksan
        yüz birkaç
    """,
    "uk": """
        два дві двох три трьох чотири п'ять шість сім вісім дев'ять десять п'ятнадцять двадцять тридцять
        сорок п'ятдесят сто двісті триста кілька декілька півтора пару
    """,
    "ur": "دو تین چار پانچ چھ سات آٹھ نو دس بیس تیس چالیس پچاس سو چند",
    "vi": "hai ba bốn năm sáu bảy tám chín mười vài mấy",
}

_GENERAL = frozenset(_INTERNATIONAL.split())
_SETS = {language: words | _GENERAL for language, words in word_sets(_NOUNS).items()}
_SETS["bs"], _SETS["nn"] = _SETS["hr"], _SETS["no"]
_NUMBER_WORD_SETS = word_sets(_NUMBER_WORDS)
_NUMBER_WORD_SETS["bs"], _NUMBER_WORD_SETS["nn"] = _NUMBER_WORD_SETS["hr"], _NUMBER_WORD_SETS["no"]


def writes_ordinals_with_dot(language: str) -> bool:
    """Whether the language writes "fifth" as `5.`, so that the dot need not end a sentence."""
    return language in _ORDINAL_DOT_LANGUAGES


def nouns_before_numbers(language: str) -> frozenset[str]:
    """Words that belong to a number after them, such as `page` in "page 14" and "circa", without a final dot.

    A language without a list has the international ones only.
    """
    return _SETS.get(language, _GENERAL)


def number_words(language: str) -> frozenset[str]:
    """Numerals that are written as words, such as `three`. Empty for a language without a list."""
    return _NUMBER_WORD_SETS.get(language, frozenset())
