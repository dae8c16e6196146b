"""The months' names, which belong to the number beside them: "5 January", "January 2020".

Source: the names of months in Unicode CLDR, in both their grammatical forms (licence Unicode-3.0; read from
Babel 2.18), and for da, de, en, fr, nl, nn, no, ru and sv the short names without dots; short names of
other languages are often other words. Added are the cases in which Slavic, Finnish, Greek and Hungarian
texts name a month beside a year, the Arabic names of the Levant and the Maghreb, the Persian calendar, and
spellings.
"""

from app.transcript.lexicon.words import word_sets

_WORDS = {
    "ar": """
        يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر كانون شباط آذار
        نيسان أيار حزيران تموز آب أيلول تشرين جانفي فيفري أفريل ماي جوان جويلية أوت
    """,
    "bg": "януари февруари март април май юни юли август септември октомври ноември декември",
    "bs": "januar februar mart april maj juni juli august septembar oktobar novembar decembar",
    "ca": "gener febrer març abril maig juny juliol agost setembre octubre novembre desembre",
    "cs": """
        ledna února března dubna května června července srpna září října listopadu prosince leden únor
        březen duben květen červen červenec srpen říjen listopad prosinec lednu únoru březnu dubnu
        květnu červnu červenci srpnu říjnu prosinci
    """,
    "da": """
        januar februar marts april maj juni juli august september oktober november december jan feb mar
        apr jun jul aug sep okt nov dec
    """,
    "de": """
        januar februar märz april mai juni juli august september oktober november dezember jan feb apr
        aug sept okt nov dez mär jun jul sep
    """,
    "el": """
        ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου
        νοεμβρίου δεκεμβρίου ιανουάριος φεβρουάριος μάρτιος απρίλιος μάιος ιούνιος ιούλιος αύγουστος
        σεπτέμβριος οκτώβριος νοέμβριος δεκέμβριος ιανουάριο φεβρουάριο μάρτιο απρίλιο μάιο ιούνιο
        ιούλιο αύγουστο σεπτέμβριο οκτώβριο νοέμβριο δεκέμβριο γενάρη φλεβάρη μάρτη απρίλη μάη ιούνη
        ιούλη σεπτέμβρη οκτώβρη νοέμβρη δεκέμβρη
    """,
    "en": """
        january february march april may june july august september october november december jan feb
        mar apr jun jul aug sep oct nov dec sept
    """,
    "es": """
        enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
        setiembre
    """,
    "et": "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember",
    "fa": """
        ژانویهٔ فوریهٔ مارس آوریل مهٔ ژوئن ژوئیهٔ اوت سپتامبر اکتبر نوامبر دسامبر ژانویه فوریه مه ژوئیه
        فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند
    """,
    "fi": """
        tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta
        lokakuuta marraskuuta joulukuuta tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu
        elokuu syyskuu lokakuu marraskuu joulukuu tammikuussa helmikuussa maaliskuussa huhtikuussa
        toukokuussa kesäkuussa heinäkuussa elokuussa syyskuussa lokakuussa marraskuussa joulukuussa
    """,
    "fr": """
        janvier février mars avril mai juin juillet août septembre octobre novembre décembre janv févr
        avr juil sept oct nov déc
    """,
    "he": "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר מרס",
    "hi": """
        जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर फरवरी सितम्बर अक्तूबर
        नवम्बर दिसम्बर
    """,
    "hr": """
        siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga
        prosinca siječanj veljača ožujak travanj svibanj lipanj srpanj kolovoz rujan listopad studeni
        prosinac siječnju veljači ožujku travnju svibnju lipnju srpnju kolovozu rujnu listopadu
        studenom studenog prosincu
    """,
    "hu": """
        január február március április május június július augusztus szeptember október november
        december januárban februárban márciusban áprilisban májusban júniusban júliusban augusztusban
        szeptemberben októberben novemberben decemberben
    """,
    "id": "januari februari maret april mei juni juli agustus september oktober november desember",
    "it": """
        gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    """,
    "ko": "1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월",
    "ms": "januari februari mac april mei jun julai ogos september oktober november disember",
    "nl": """
        januari februari maart april mei juni juli augustus september oktober november december jan feb
        mrt apr jun jul aug sep okt nov dec
    """,
    "nn": """
        januar februar mars april mai juni juli august september oktober november desember jan feb apr
        aug sep okt nov des mar jun jul
    """,
    "no": """
        januar februar mars april mai juni juli august september oktober november desember jan feb apr
        aug sep okt nov des mar jun jul
    """,
    "pl": """
        stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada
        grudnia styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad
        grudzień styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrześniu październiku
        listopadzie grudniu
    """,
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "ro": """
        ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie
        decembrie
    """,
    "ru": """
        января февраля марта апреля мая июня июля августа сентября октября ноября декабря янв февр мар
        апр июн июл авг сент окт нояб дек январь февраль март апрель май июнь июль август сентябрь
        октябрь ноябрь декабрь январе феврале марте апреле мае июне июле августе сентябре октябре
        ноябре декабре
    """,
    "sk": """
        januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra január
        február marec apríl máj jún júl august september október november december januári februári
        marci apríli máji júni júli auguste septembri októbri novembri decembri
    """,
    "sv": """
        januari februari mars april maj juni juli augusti september oktober november december jan feb
        apr aug sep okt nov dec
    """,
    "tr": "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "uk": """
        січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня січень
        лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень січні
        лютому березні квітні травні червні липні серпні вересні жовтні листопаді грудні
    """,
    "ur": "جنوری فروری مارچ اپریل مئی جون جولائی اگست ستمبر اکتوبر نومبر دسمبر",
    "vi": "tháng",
}

_HEBREW_PREFIXES = (
    "",
    "ב",
    "ל",
    "מ",
    "ה",
    "ו",
)  # "in", "to", "from", "the" and "and" are written to the word
_HEBREW = " ".join(prefix + month for month in _WORDS["he"].split() for prefix in _HEBREW_PREFIXES)

_SETS = word_sets({**_WORDS, "he": _HEBREW})


def months(language: str) -> frozenset[str]:
    """The months' names in the forms that stand beside a number. Empty for a language without a list."""
    return _SETS.get(language, frozenset())
