"""Units that follow a number and belong to it, so that nothing should break between them.

They are measures of length, weight, volume, area and heat; times; moneys; parts; and the great numerals,
which count as units after digits. Singular, plural and the cases that follow a number are listed.

The names include those of common units in Unicode CLDR 48 (npm package cldr-units-full, licence Unicode-3.0);
the rest is written for this project.
"""

from app.transcript.lexicon.words import word_form, word_sets

_SYMBOLS = """
    km m cm mm µm nm kg g mg µg t l ml cl dl km² m² cm² m³ cm³ km/h kmh m/s hz khz mhz ghz kb mb gb tb mbps
    gbps kw mw gw kwh mwh kv mah °c °f ° ℃ ℉ % ‰ € $ £ ¥ ₽ ₹ ₩ ₺ ₴ ₪ ₫ eur usd gbp chf jpy px dpi db bar
    psi hp rpm fps kcal kj pa hpa kpa ms h min
"""
_WORDS = {
    "ar": """
        متر مترا متراً أمتار كيلومتر كيلومترا كيلومتراً كيلومترات كيلو سنتيمتر سنتيمترا سنتيمترات ميل ميلا
        أميال غرام غراما جرام كيلوغرام كيلوغراما كيلوجرام طن طنا أطنان لتر لترا لترات درجة درجات مئوية
        دقيقة دقائق ثانية ثواني ثوان ساعة ساعات يوم يوما يوماً أيام أسبوع أسبوعا أسابيع شهر شهرا شهراً أشهر
        شهور سنة سنوات عام عاما عاماً أعوام قرن قرنا قرون دولار دولارا دولارات يورو جنيه جنيها ريال ريالا
        دينار دينارا درهم درهما ليرة بالمئة بالمائة مئة مائة ألف ألفا آلاف مليون مليونا ملايين مليار مليارا
        مليارات تريليون مرة مرات شخص شخصا أشخاص هكتار غرامات
        صباحا صباحاً مساء مساءً ظهرا
    """,
    "bg": """
        метър метра метри километър километра километри сантиметър сантиметра сантиметри милиметра мили
        грам грама килограм килограма кг тон тона литър литра градуса градус процент процента час часа
        минута минути секунда секунди ден дни дена седмица седмици месец месеца година години век века лев
        лева лв евро долар долара стотинки хиляди хил милион милиона млн милиард милиарда млрд души пъти
        път декара хектара км м см г миля хектар целзий
    """,
    "ca": """
        metre metres quilòmetre quilòmetres centímetre centímetres mil·límetres milles gram grams quilo
        quilos quilogram quilograms tona tones litre litres grau graus hora hores minut minuts segon segons
        dia dies setmana setmanes mes mesos any anys segle segles euro euros dòlar dòlars cèntims mil milió
        milions milers cops vegades persones hectàrees cent celsius hectàrea milla
    """,
    "cs": """
        metr metru metry metrů kilometr kilometru kilometry kilometrů centimetr centimetru centimetry
        centimetrů milimetr milimetry milimetrů míle mil gram gramu gramy gramů kilo kila kil kilogram
        kilogramu kilogramy kilogramů tuna tuny tun litr litru litry litrů stupeň stupně stupňů procento
        procenta procent hodina hodiny hodin hodinu minuta minuty minut minutu sekunda sekundy sekund den
        dny dní dnů týden týdny týdnů měsíc měsíce měsíců rok roky roku let století koruna koruny korun kč
        euro eura eur dolar dolary dolarů haléřů tisíc tisíce milion miliony milionů miliarda miliardy
        miliard krát lidí hektarů celsia dne hektar hektaru hektary týdne
    """,
    "da": """
        meter kilometer centimeter millimeter mil gram kilo kilogram ton liter grad grader procent pct time
        timer minut minutter sekund sekunder dag dage uge uger måned måneder år århundrede krone kroner kr
        øre euro dollar dollars pund hundrede tusind tusinde million millioner mio milliard milliarder mia
        gange personer mennesker hektar celsius mile miles tons århundreder
    """,
    "de": """
        meter metern kilometer kilometern zentimeter zentimetern millimeter millimetern meile meilen gramm
        kilo
        kilogramm tonne tonnen liter litern grad celsius prozent promille uhr stunde stunden std minute
        minuten min
        sekunde sekunden sek tag tage tagen woche wochen monat monate monaten jahr jahre jahren jahrhundert
        jahrhunderte
        jahrhunderten euro cent dollar franken pfund mark hundert tausend tsd million millionen mio
        milliarde milliarden
        mrd billion billionen mal personen menschen hektar quadratmeter kubikmeter stundenkilometer stück
        zoll grad
        watt volt kilowatt megawatt hertz megabyte gigabyte
    """,
    "el": """
        μέτρο μέτρα μέτρων χιλιόμετρο χιλιόμετρα χιλιομέτρων εκατοστό εκατοστά χιλιοστά μίλι μίλια
        γραμμάριο γραμμάρια κιλό κιλά κιλών τόνος τόνοι τόνους τόνων λίτρο λίτρα βαθμός βαθμοί βαθμούς τοις
        ώρα ώρες ωρών λεπτό λεπτά λεπτών δευτερόλεπτο δευτερόλεπτα μέρα μέρες ημέρα ημέρες ημερών εβδομάδα
        εβδομάδες εβδομάδων μήνας μήνα μήνες μηνών χρόνος χρόνο χρόνια χρόνων έτος έτη ετών αιώνας αιώνα
        αιώνες ευρώ δολάριο δολάρια δολαρίων λίρες δραχμές χιλιάδες χιλιάδων εκατομμύριο εκατομμύρια
        εκατομμυρίων εκατ δισεκατομμύριο δισεκατομμύρια δισεκατομμυρίων δισ φορές άτομα στρέμματα εκτάρια
        εκτάριο κελσίου π.μ μ.μ χιλιόγραμμα χιλιόγραμμο
    """,
    "en": """
        meter meters metre metres kilometer kilometers kilometre kilometres centimeter centimeters
        centimetre centimetres millimeter millimeters millimetre millimetres mile miles yard yards foot
        feet ft inch inches gram grams kilo kilos kilogram kilograms ton tons tonne tonnes pound pounds lb
        lbs ounce ounces oz stone liter liters litre litres gallon gallons pint pints mph degree degrees
        celsius fahrenheit percent per cent hour hours hr hrs minute minutes mins second seconds sec secs
        day days week weeks month months year years yr yrs decade decades century centuries dollar dollars
        cents euro euros pence penny yen rupees bucks hundred thousand million millions billion billions
        trillion dozen times people o'clock acres acre hectares watt watts kilowatts megawatts volts hertz
        megabytes gigabytes terabytes bc ad bce ce k am pm a.m p.m hectare
    """,
    "es": """
        metro metros kilómetro kilómetros centímetro centímetros milímetro milímetros milla millas pie pies
        pulgada pulgadas gramo gramos kilo kilos kilogramo kilogramos tonelada toneladas litro litros grado
        grados centígrados ciento hora horas minuto minutos segundo segundos día días semana semanas mes
        meses año años década décadas siglo siglos euro euros dólar dólares peso pesos céntimo céntimos
        centavos libras pesetas mil millón millones mill cientos miles veces vez personas hectárea
        hectáreas vatios kilovatios megavatios celsius
    """,
    "et": """
        meeter meetrit kilomeeter kilomeetrit sentimeeter sentimeetrit gramm grammi kilo kilogramm
        kilogrammi tonn tonni liiter liitrit kraad kraadi protsent protsenti tund tundi minut minutit
        sekund sekundit päev päeva nädal nädalat kuu kuud aasta aastat sajand eurot euro dollarit senti
        tuhat tuhandet miljon miljonit miljard miljardit korda inimest celsiuse hektar hektarit miil miili
        sajandit ööpäev ööpäeva
    """,
    "fa": """
        متر کیلومتر سانتی‌متر سانتیمتر میلی‌متر میلیمتر مایل گرم کیلو کیلوگرم تن لیتر درجه درصد ساعت دقیقه
        ثانیه روز هفته ماه سال قرن دهه تومان تومن ریال دلار یورو صد هزار میلیون میلیارد تریلیون نفر بار
        هکتار درجهٔ سده سلسیوس
    """,
    "fi": """
        metri metriä metrin kilometri kilometriä kilometrin senttimetri senttimetriä sentti senttiä
        millimetri millimetriä maili mailia gramma grammaa kilo kiloa kilon kilogramma kilogrammaa tonni
        tonnia litra litraa aste astetta prosentti prosenttia prosentin tunti tuntia tunnin minuutti
        minuuttia minuutin sekunti sekuntia sekunnin päivä päivää päivän viikko viikkoa viikon kuukausi
        kuukautta kuukauden vuosi vuotta vuoden vuosisata vuosisataa euro euroa euron dollari dollaria
        dollarin sata sataa tuhat tuhatta miljoona miljoonaa milj miljardi miljardia mrd kertaa henkilöä
        ihmistä hehtaaria kpl kappaletta celsiusaste celsiusastetta hehtaari
    """,
    "fr": """
        mètre mètres kilomètre kilomètres centimètre centimètres millimètre millimètres mile miles mille
        pied pieds pouce pouces gramme grammes kilo kilos kilogramme kilogrammes tonne tonnes litre litres
        degré degrés pour heure heures minute minutes seconde secondes jour jours semaine semaines mois an
        ans année années décennies siècle siècles euro euros dollar dollars centime centimes franc francs
        livres cent cents million millions milliard milliards fois personnes hectare hectares watts
        kilowatts mégawatts celsius
    """,
    "he": """
        מטר מטרים ק"מ קילומטר קילומטרים ס"מ סנטימטר סנטימטרים מ"מ מילימטר מייל מיילים גרם ק"ג קילו קילוגרם
        טון טונות ליטר ליטרים מעלה מעלות אחוז אחוזים שעה שעות דקה דקות שנייה שניה שניות יום ימים שבוע
        שבועות חודש חודשים שנה שנים מאה שקל שקלים ש"ח דולר דולרים יורו אגורות אלף אלפים מיליון מיליוני
        מיליארד מיליארדי פעמים איש אנשים דונם הקטאר מאות מעלת צלזיוס
        בבוקר בערב
    """,
    "hi": """
        मीटर किलोमीटर सेंटीमीटर मिलीमीटर किमी मील फुट फीट फ़ीट इंच ग्राम किलो किलोग्राम टन लीटर डिग्री प्रतिशत
        फीसदी फ़ीसदी घंटा घंटे घंटों मिनट मिनटों सेकंड सेकेंड दिन दिनों हफ्ते हफ़्ते सप्ताह महीना महीने महीनों
        साल सालों वर्ष वर्षों सदी शताब्दी रुपया रुपये रुपए रुपयों डॉलर यूरो पैसे सौ हज़ार हजार लाख करोड़ अरब
        मिलियन बिलियन बार लोग लोगों बजे एकड़ हेक्टेयर सेल्सियस
    """,
    "hr": """
        metar metra metara kilometar kilometra kilometara centimetar centimetra centimetara milimetara
        milja milje gram grama kilogram kilograma kila kilo tona tone litra litre litara stupanj stupnja
        stupnjeva posto sat sata sati minuta minute minutu sekunda sekunde sekundi dan dana tjedan tjedna
        tjedana mjesec mjeseca mjeseci godina godine godinu stoljeće stoljeća euro eura kuna kune dolar
        dolara tisuća tisuće milijun milijuna milijarda milijarde milijardi puta ljudi osoba hektara
        celzijeva celzijevih hektar
    """,
    "hu": """
        méter métert méteres kilométer kilométert kilométeres centiméter centi centis milliméter mérföld
        gramm kiló kilós kilogramm tonna tonnás liter literes fok fokos százalék százalékos százaléka óra
        órát órás órakor perc percet perces másodperc nap napot napos hét hetet hónap hónapot hónapos év
        évet éves század forint forintot euró eurót dollár dollárt száz ezer millió milliárd billió szor
        ember fő darab hektár celsius évszázad
    """,
    "id": """
        meter kilometer sentimeter milimeter mil kaki inci gram kilo kilogram ton liter derajat persen jam
        menit detik hari minggu pekan bulan tahun abad dekade rupiah dolar euro ratus ribu juta miliar
        triliun kali orang hektar hektare celsius
    """,
    "it": """
        metro metri chilometro chilometri centimetro centimetri millimetro millimetri miglio miglia piede
        piedi pollici grammo grammi chilo chili chilogrammo chilogrammi tonnellata tonnellate litro litri
        grado gradi ora ore minuto minuti secondo secondi giorno giorni settimana settimane mese mesi anno
        anni decenni secolo secoli euro dollaro dollari centesimo centesimi lire sterline cento mila
        milione milioni miliardo miliardi volte volta persone ettaro ettari per celsius percento
    """,
    "ko": """
        미터 미터를 미터의 킬로미터 킬로 센티미터 센티 밀리미터 마일 그램 킬로그램 톤 리터 도 퍼센트 프로
        시간 시간을 시간이 시간의 분 분을 초 일 일간 주 주일 개월 달 년 년간 년의 년에 년대 세기 월 시 원
        원을 원의 달러 유로 엔 위안 백 천 만 억 조 번 번째 번의 번은 명 명의 명이 명을 명은 사람 개 개의
        개를 개가 마리 권 장 대 잔 병 층 살 세 가지 가지의 배 회 평 인분 곳 헥타르
    """,
    "ms": """
        meter kilometer sentimeter milimeter batu kaki inci gram kilo kilogram tan liter darjah peratus jam
        minit saat hari minggu bulan tahun abad dekad ringgit sen dolar euro ratus ribu juta bilion trilion
        kali orang hektar ekar celsius
    """,
    "nl": """
        meter kilometer centimeter millimeter mijl gram kilo kilogram ton liter graden graad procent uur
        uren minuut minuten seconde seconden sec dag dagen week weken maand maanden jaar jaren eeuw eeuwen
        euro cent dollar gulden pond honderd duizend miljoen mln miljard mld biljoen keer maal mensen
        personen hectare vierkante watt kilowatt megawatt volt celsius
    """,
    "nn": """
        meter kilometer centimeter millimeter mil gram kilo kilogram tonn liter grad gradar prosent time
        timar minutt minuttar sekund sekundar dag dagar veke veker månad månader år krone kroner kr øre
        euro dollar hundre tusen million millionar mill milliard milliardar mrd gonger personar menneske
        celsius døgn hektar hundreår
    """,
    "no": """
        meter kilometer centimeter millimeter mil gram kilo kilogram tonn liter grad grader prosent time
        timer minutt minutter sekund sekunder dag dager uke uker måned måneder år århundre krone kroner kr
        øre euro dollar pund hundre tusen million millioner mill milliard milliarder mrd ganger personer
        mennesker hektar mål celsius døgn mile miles århundrer
    """,
    "pl": """
        metr metra metry metrów kilometr kilometra kilometry kilometrów centymetr centymetra centymetry
        centymetrów milimetr milimetry milimetrów mila mile mil gram grama gramy gramów kilo kilogram
        kilograma kilogramy kilogramów tona tony ton litr litra litry litrów stopień stopnia stopnie stopni
        procent procenta godzina godziny godzin godzinę minuta minuty minut minutę sekunda sekundy sekund
        sekundę dzień dni tydzień tygodnie tygodni miesiąc miesiące miesięcy rok roku lata lat wiek wieku
        wieków złoty złote złotych zł grosz grosze groszy euro dolar dolary dolarów tysiąc tysiące tysięcy
        tys milion miliony milionów mln miliard miliardy miliardów mld razy raz osób osoby ludzi hektarów
        celsjusza dnia hektar hektara hektary miesiąca mili tygodnia wieki
        r rr proc
        rano wieczorem
    """,
    "pt": """
        metro metros quilômetro quilômetros quilómetro quilómetros centímetro centímetros milímetro
        milímetros milha milhas pé pés polegadas grama gramas quilo quilos quilograma quilogramas tonelada
        toneladas litro litros grau graus cento hora horas minuto minutos segundo segundos dia dias semana
        semanas mês meses ano anos década décadas século séculos euro euros dólar dólares real reais
        centavo centavos cêntimos libras cem mil milhão milhões bilhão bilhões bilião biliões vezes vez
        pessoas hectare hectares celsius
    """,
    "ro": """
        metru metri kilometru kilometri centimetru centimetri milimetri milă mile gram grame kilogram
        kilograme kile tonă tone litru litri grad grade sută sute oră ore ora minut minute secundă secunde
        zi zile săptămână săptămâni lună luni an ani secol secole leu lei ban bani euro dolar dolari mie
        mii milion milioane miliard miliarde ori persoane oameni hectare celsius hectar procent procente
    """,
    "ru": """
        метр метра метров метры километр километра километров сантиметр сантиметра сантиметров миллиметр
        миллиметра миллиметров миля мили миль грамм грамма граммов кило килограмм килограмма килограммов
        тонна тонны тонн тонну литр литра литров градус градуса градусов процент процента процентов час
        часа часов минута минуту минуты минут секунда секунду секунды секунд день дня дней сутки суток
        неделя неделю недели недель месяц месяца месяцев год года году годов годы лет век века веке веков
        рубль рубля рублей копейка копейки копеек евро доллар доллара долларов гривен тысяча тысячу тысячи
        тысяч миллион миллиона миллионов миллиард миллиарда миллиардов триллион триллионов раз раза человек
        человека штук гектаров км м см мм кг г т л ч мин сек руб коп тыс млн млрд гг вв °с гектар гектара
        цельсия
        утра вечера ночи
    """,
    "sk": """
        meter metra metre metrov kilometer kilometra kilometre kilometrov centimeter centimetrov milimeter
        milimetrov míľa míle míľ gram gramov kilo kíl kilogram kilogramov tona tony ton liter litra litre
        litrov stupeň stupne stupňov percento percentá percent hodina hodiny hodín hodinu minúta minúty
        minút minútu sekunda sekundy sekúnd deň dni dní týždeň týždne týždňov mesiac mesiace mesiacov rok
        roky roku rokov storočie storočia koruna koruny korún euro eurá eur dolár doláre dolárov centov
        tisíc milión milióny miliónov miliarda miliardy miliárd krát ľudí osôb hektárov celzia centimetra
        centimetre dňa gramu gramy hektár hektára hektáre kilogramu kilogramy mesiaca percenta roka storočí
        stupňa týždňa
    """,
    "sv": """
        meter kilometer centimeter millimeter mil gram kilo kilogram ton liter grad grader procent timme
        timmar minut minuter sekund sekunder dag dagar dygn vecka veckor månad månader år århundrade krona
        kronor kr öre euro dollar pund hundra tusen miljon miljoner milj miljard miljarder mdr gånger
        personer människor hektar stycken celsius mile århundraden
    """,
    "th": """
        ปี เดือน วัน ชั่วโมง นาที วินาที บาท ดอลลาร์ สตางค์ กิโลเมตร เมตร เซนติเมตร กิโลกรัม กรัม
        ตัน ลิตร องศา เปอร์เซ็นต์ คน ครั้ง
        ร้อย พัน หมื่น แสน ล้าน โมง ทุ่ม ขวบ ตัว ใบ คัน หลัง เล่ม ชาม จาน แก้ว
    """,
    "tr": """
        metre kilometre santimetre santim milimetre mil gram kilo kilogram ton litre derece yüzde saat
        saatlik dakika dakikalık saniye saniyelik gün günlük hafta haftalık ay aylık yıl yıllık yıldır
        yılda yaşında yaş yüzyıl lira kuruş dolar avro euro tl yüz bin milyon milyar trilyon kez kere defa
        kişi kişilik tane adet hektar dönüm santigrat
    """,
    "uk": """
        метр метра метри метрів кілометр кілометра кілометри кілометрів сантиметр сантиметри сантиметрів
        міліметр міліметрів миля милі миль грам грама грами грамів кілограм кілограма кілограми кілограмів
        кіло тонна тонни тонн літр літра літри літрів градус градуси градусів відсоток відсотка відсотки
        відсотків година годину години годин хвилина хвилину хвилини хвилин секунда секунду секунди секунд
        день дні днів доба доби діб тиждень тижні тижнів місяць місяці місяців рік року році роки років
        століття гривня гривні гривень копійок євро долар долара долари доларів тисяча тисячу тисячі тисяч
        мільйон мільйона мільйони мільйонів мільярд мільярда мільярди мільярдів раз рази разів людей осіб
        гектарів км м см мм кг г т л хв сек грн тис млн млрд рр °с гектар гектара гектари градуса дня
        місяця сантиметра століть тижня цельсія
        р ст
        ранку вечора ночі
    """,
    "ur": """
        میٹر کلومیٹر سینٹی میل فٹ انچ گرام کلو کلوگرام ٹن لیٹر ڈگری فیصد گھنٹہ گھنٹے گھنٹوں منٹ سیکنڈ دن
        دنوں ہفتہ ہفتے ہفتوں مہینہ مہینے مہینوں سال سالوں برس صدی روپے روپیہ ڈالر یورو سو ہزار لاکھ کروڑ
        ارب کھرب ملین بلین بار لوگ لوگوں افراد بجے ایکڑ سیلسیس ہیکٹر
    """,
    "vi": """
        mét ki-lô-mét cây cân gam ki-lô-gam kí ký tấn tạ lít độ phần giờ tiếng phút giây ngày tuần tháng
        năm tuổi thế đồng đô euro trăm nghìn ngàn triệu tỷ tỉ lần người héc-ta dặm kilôgam kilômét xentimét
    """,
    "zh": """
        年 年代 月 日 天 号 號 岁 歲 周 週 星期 小时 小時 点 點 点钟 點鐘 分 分钟 分鐘 秒 秒钟 秒鐘
        世纪 世紀 元 块 塊 块钱 塊錢 美元 欧元 歐元 公里 公尺 米 厘米 公斤 千克 克 吨 噸 升 度 倍 万
        萬 亿 億 千 百 个 個 个月 個月 次 趟 遍 回 位 名 人 只 隻 条 條 件 本 张 張 座 栋 棟 辆 輛
        台 家 所 间 間 层 層 页 頁 章 届 屆 种 種 杯 瓶
        月份
    """,
}

_GENERAL = frozenset(map(word_form, _SYMBOLS.split()))
_SETS = {language: words | _GENERAL for language, words in word_sets(_WORDS).items()}
_SETS["bs"] = _SETS["hr"]


def units_of_measure(language: str) -> frozenset[str]:
    """Words and symbols that follow a number and belong to it, such as `km` and `years`, without a final dot.

    A language without a list has the international symbols only.
    """
    return _SETS.get(language, _GENERAL)
