"""Titles and forms of address that stand before a name, so that nothing should break between them.

They are listed without a final dot. A word such as "president" or "aunt" is a title only before a name: in
a language with capitals, before a word that begins with one. Languages that put such words after the name,
such as Korean, list them in `leaning_back`. Where a script has no capitals, only titles that seldom stand
alone are listed.

The lists are written for this project.
"""

from app.transcript.lexicon.words import word_sets

_INTERNATIONAL = "mr mrs dr prof"
_WORDS = {
    "ar": """
        السيد السيدة الآنسة الدكتور الدكتورة د الأستاذ الأستاذة المهندس المهندسة الشيخ الشيخة الحاج الحاجة
        الإمام
        دكتور دكتورة سيدنا مولانا أبو
        رئيس الرئيس وزير الوزير الملك الأمير
    """,
    "bg": """
        господин господине госпожа госпожо госпожица г-н г-жа г-ца д-р доктор проф професор инженер инж
        президент президентът премиерът министър министърът крал кралица принц принцеса цар св свети света
        генерал
        полковник капитан майор чичо леля баба дядо отец
    """,
    "ca": """
        senyor senyora senyoreta sr sra srta don donya doctor doctora dr dra professor professora president
        presidenta
        ministre ministra rei reina príncep princesa sant santa st sta general coronel capità papa oncle
        tia
    """,
    "cs": """
        pan pane pana panu panem pánové paní slečna slečno doktor doktorka profesor profesorka ing mgr mudr
        judr phdr
        inženýr prezident prezidenta premiér ministr ministryně král královna princ princezna svatý svatá
        sv generál
        plukovník kapitán major strýček strýc teta babička děda otec papež
    """,
    "da": """
        hr fru frk frøken herr doktor professor præsident statsminister minister konge kong dronning prins
        prinsesse
        skt sankt general oberst kaptajn onkel tante pave
    """,
    "de": """
        herr herrn hr hrn frau fr fräulein doktor professor professorin ingenieur dipl.-ing präsident
        präsidentin
        bundeskanzler bundeskanzlerin kanzler kanzlerin minister ministerin könig königin kaiser kaiserin
        prinz
        prinzessin graf gräfin fürst herzog baron sankt st general oberst hauptmann leutnant kapitän
        kommissar
        kommissarin onkel tante oma opa papst pater bischof schwester lord lady sir
        familie
    """,
    "el": """
        κύριος κύριο κυρίου κύριε κυρία κυρίας δεσποινίς κ κα δρ γιατρός καθηγητής καθηγήτρια πρόεδρος
        πρωθυπουργός
        υπουργός βασιλιάς βασίλισσα πρίγκιπας πριγκίπισσα άγιος άγιο αγία αγίου αγίας στρατηγός λοχαγός
        θείος θεία
        πάπας
    """,
    "en": """
        ms miss messrs mx sir madam madame lord lady dame doctor professor president chancellor senator
        governor mayor
        minister secretary judge justice ambassador king queen prince princess emperor empress duke duchess
        count
        countess baron baroness saint st pope cardinal archbishop bishop father brother sister rev reverend
        rabbi imam
        general gen colonel col major maj captain capt lieutenant lt sergeant sgt corporal cpl private pvt
        admiral adm
        commander cmdr officer detective inspector constable chief sheriff agent coach uncle aunt auntie
        grandma
        grandpa
    """,
    "es": """
        señor señora señorita señores sr sra srta sres don doña d dña doctor doctora dra profesor profesora
        licenciado
        licenciada ingeniero presidente presidenta ministro ministra rey reina príncipe princesa duque
        duquesa conde
        condesa san santo santa sto sta fray sor padre monseñor general coronel capitán comandante teniente
        sargento
        tío tía papa cardenal obispo
    """,
    "et": """
        härra hr proua pr preili doktor professor president peaminister minister kuningas kuninganna püha
        kindral
    """,
    "fa": """
        آقای اقای خانم دکتر مهندس پروفسور جناب سرکار حضرت امام شیخ سید حاج آیت‌الله ژنرال سرهنگ
    """,
    "fi": """
        herra rouva neiti hra rva nti tohtori tri professori presidentti pääministeri ministeri kuningas
        kuningatar
        prinssi prinsessa pyhä kenraali eversti kapteeni setä täti eno paavi
    """,
    "fr": """
        monsieur messieurs madame mesdames mademoiselle m mm mme mmes mlle mlles me mgr monseigneur maître
        docteur
        professeur président présidente ministre sénateur roi reine prince princesse empereur impératrice
        duc duchesse
        comte comtesse baron baronne saint sainte st ste père frère sœur soeur abbé cardinal pape général
        colonel
        commandant capitaine lieutenant sergent commissaire inspecteur oncle tante tonton tata sir lord
        lady
    """,
    "he": """
        מר גברת גב' אדון ד"ר דוקטור פרופ' פרופסור עו"ד הרב רבי רבנית אלוף סרן
        ראש שר שרת נשיא ח"כ רה"מ רח'
    """,
    "hi": """
        श्री श्रीमती श्रीमान सुश्री कुमारी डॉ डा प्रो प्रोफ़ेसर प्रोफेसर पंडित पं मिस्टर मिसेज मिस
        जनरल कर्नल मेजर
        इंस्पेक्टर
        प्रधानमंत्री राष्ट्रपति मुख्यमंत्री
    """,
    "hr": """
        gospodin gospodine gospodina gospodinu gospođa gospođo gospođe gospođu gospođica g gđa gđica doktor
        doktorica
        profesor profesorica predsjednik predsjednica premijer ministar ministrica kralj kraljica princ
        princeza sveti
        sveta sv general pukovnik kapetan ujak stric teta baka djed fra don papa biskup
    """,
    "hu": """
        dr doktor professzor ifj id özv gróf báró herceg szent király elnök tábornok ezredes kapitány
        őrnagy
    """,
    "id": """
        bapak pak ibu bu tuan nyonya nona saudara saudari mas mbak bang kak dokter profesor presiden
        menteri gubernur
        raja ratu pangeran putri sultan haji hajah ustaz ustad kiai jenderal kolonel kapten mayor paman
        bibi om tante
        santo santa paus
    """,
    "it": """
        signor signora signorina signori sig sigg don donna dottor dottore dottoressa dott professor
        professore
        professoressa avvocato avv ingegner ing presidente ministro ministra re regina principe principessa
        duca
        duchessa conte contessa barone san santo santa sant padre suor fra papa cardinale monsignor mons
        generale
        colonnello capitano tenente sergente commissario ispettore zio zia nonno nonna
    """,
    # Family names, which stand before the given name.
    "ko": "김 박 최 정 강 조 윤 장 임 오 서 신 권 황 송 류 홍 문 손 배 백 허 남",
    "ms": """
        encik en puan pn cik tuan datuk dato tan sri doktor profesor presiden menteri raja sultan tunku
        tengku haji
        hajah ustaz jeneral kolonel kapten mejar pak mak
    """,
    "nl": """
        meneer mijnheer mevrouw mevr mw dhr heer juffrouw mej dokter doctor professor drs ir ing president
        premier
        minister koning koningin prins prinses graaf gravin hertog keizer sint st pater pastoor paus
        generaal kolonel
        kapitein luitenant majoor oom tante opa oma
    """,
    "no": """
        herr hr fru frk frøken doktor professor president statsminister minister kong konge dronning prins
        prinsesse
        sankt st general oberst kaptein onkel tante pave
    """,
    "pl": """
        pan pana panu panie panem państwo państwa pani panią panna doktor profesor inż inżynier mgr
        prezydent premier
        minister król królowa książę księżna księżniczka cesarz hrabia święty święta świętego świętej św
        generał
        pułkownik major kapitan porucznik sierżant gen płk mjr kpt wujek ciocia ksiądz księdza ojciec
        siostra papież
        biskup kardynał
    """,
    "pt": """
        senhor senhora senhorita sr sra srta seu dona dom d doutor doutora dra professor professora profa
        engenheiro
        presidente presidenta ministro ministra governador rei rainha príncipe princesa imperador duque
        duquesa conde
        condessa são santo santa sto sta frei padre pe papa cardeal general coronel capitão major tenente
        sargento tio
        tia
    """,
    "ro": """
        domnul domnule domnului doamna doamnă doamnei domnișoara dl dna d-na d-l doctor doctorul profesor
        profesorul
        profesoara președintele ministrul regele regina prințul prințesa sfântul sfânta sf generalul
        colonelul
        căpitanul maiorul unchiul mătușa părintele papa
    """,
    "ru": """
        господин господина господину господином господа госпожа госпожу госпожи госпоже г-н г-жа мистер
        мистера миссис
        мисс месье мадам сэр лорд леди товарищ товарища доктор доктора профессор профессора академик
        президент
        президента президенту президентом премьер-министр министр министра король короля королева
        императрица император
        принц принцесса царь князь княгиня княжна граф графиня святой святого святая св генерал генерала
        полковник
        майор капитан капитана лейтенант сержант маршал дядя дяди дядю тётя тетя тёти тётю отец папа
        епископ
    """,
    "sk": """
        pán pane pána pánovi pani slečna doktor doktorka profesor profesorka ing mgr mudr judr phdr
        inžinier prezident
        prezidentka premiér minister ministerka kráľ kráľovná princ princezná svätý svätá sv generál
        plukovník kapitán
        major strýko ujo teta otec pápež
    """,
    "sv": """
        herr hr fru fr fröken frk doktor professor president statsminister minister kung drottning prins
        prinsessa
        kronprins kronprinsessan sankt sankta general överste kapten major farbror morbror moster faster
        tant påve
    """,
    "tr": """
        bay bayan sayın sn doktor doç doçent profesör öğretmen av avukat hz hazreti cumhurbaşkanı başbakan
        başkan bakan
        kral kraliçe prens prenses sultan general albay binbaşı yüzbaşı teğmen komiser kaptan şeyh aziz
        papa
    """,
    "uk": """
        пан пане пана панові паном пані панна панове панна добродій лікар доктор доктора професор професора
        академік
        президент президента президенту президентом прем'єр-міністр міністр міністра король королева
        імператор принц
        принцеса цар князь княгиня гетьман граф графиня святий святого свята св генерал генерала полковник
        майор капітан
        лейтенант сержант маршал дядько тітка отець папа єпископ містер місіс міс товариш
        п
    """,
    "ur": """
        جناب محترم محترمہ مسٹر مسز مس ڈاکٹر پروفیسر مولانا مولوی حضرت جنرل کرنل میجر
    """,
    "vi": "ông bà anh chị cô chú bác cậu ngài thầy vua",
}

_GENERAL = frozenset(_INTERNATIONAL.split())
_SETS = {language: words | _GENERAL for language, words in word_sets(_WORDS).items()}
_SETS["bs"], _SETS["nn"] = _SETS["hr"], _SETS["no"]


def titles(language: str) -> frozenset[str]:
    """Titles that stand before a name, without a final dot.

    A language without a list has the international ones only.
    """
    return _SETS.get(language, _GENERAL)
