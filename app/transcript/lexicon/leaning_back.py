"""Words that belong to what precedes: a line or cue should not begin with one.

They are postpositions, enclitics, particles and auxiliaries after the verb, bound nouns, demonstratives and
possessives after the noun, and forms of address after a name. A language without an entry has none, or none
that could not as well begin a clause.

The classes are those of Universal Dependencies (ADP, PART, AUX, and Korean's dependent nouns, NNB). The
lists are written for this project from the
grammars of the languages, and looked through for gaps with the lists of the package stopwordsiso (MIT) in
ar, el, fa, he, hi, ko, pl, ru, tr and uk; no list is copied.
"""

from app.transcript.lexicon.words import word_sets

_WORDS = {
    "ar": "جدا جداً",
    "bg": "ли",
    "cs": "se si jsem jsi jsme jste bych bys by bychom byste ho mu mi",
    "de": """
        zufolge zuliebe halber entlang gmbh
    """,
    "en": """
        ago else o'clock inc ltd llc plc jr sr al
    """,
    "et": """
        jaoks järgi kaudu kohta eest juures juurde juurest poolt taga kõrval kõrvale asemel ajal tõttu
        võrra
        hulgas
    """,
    "fa": """
        را هم ها های هایی تر ترین ام ایم اید اند است نیست نیستند نیستم هست هستم هستی هستیم هستید هستند بود
        بودم
        بودی بودیم بودید بودند شده
    """,
    "fi": """
        kanssa jälkeen takia vuoksi alla alle alta päällä päälle päältä edessä eteen takana taakse vieressä
        viereen luona luokse luota mukaan kautta varten puolesta sijaan lisäksi aikana sisällä sisälle
        ulkopuolella välillä väliin kohdalla perusteella avulla ansiosta johdosta suhteen asti saakka
        lähtien
        alkaen päin
    """,
    "fr": "pas",
    "he": """
        הזה הזאת הזו האלה האלו ההוא ההיא ההם ההן
        שלי שלך שלו שלה שלנו שלכם שלכן שלהם שלהן
    """,
    "hi": """
        का के की को में से पर ने तक द्वारा लिए लिये साथ बाद बारे तरह तरफ तरफ़ बीच पास दौरान खिलाफ ख़िलाफ़ बजाय
        अलावा
        अनुसार
        समेत सहित वाला वाले वाली वालों
        ही भी जी
        है हैं हूँ हूं हो था थे थी थीं होगा होगी होंगे होता होती होते हुआ हुई हुए रहा रहे रही चुका चुके
        चुकी सकता सकती
        सकते गया गए गये गई गयी चाहिए करके
        अंदर अन्दर ऊपर नीचे सामने पीछे आगे
    """,
    "hr": """
        se li sam si je smo ste su bih bi bismo biste ću ćeš će ćemo ćete ga mu joj ih im
    """,
    "hu": """
        alatt alá alól által előtt elé elől felett fölött fölé felé felől után mögött mögé mögül között
        közé közül
        mellett mellé mellől miatt nélkül óta szerint iránt helyett ellen számára részére révén során
        esetén
        ellenére múlva végett kapcsán céljából
        is
    """,
    "id": "ini itu pun saja",
    "ja": """
        いう いった いる いた います いました いない いません いて ください くださいます
        みたい らしい くらい ぐらい ほど だけ など まで です でした でしょう でしょうか よね から ので けど
    """,
    "ko": """
        것 것이 것은 것을 것들 것들이 것들을 것들은 것도 것과 것의 것에 것으로 것이다 것이고 것인 것입니다
        것이라고 것이라는 것처럼
        것만 거 거예요 거야
        거지 건 걸 게 겁니다
        수 수는 수도 수가 때 때는 때도 때가 때의 때마다 때부터 때까지 때문 때문에 때문이다 때문입니다
        때문이에요 데 데는 데도
        줄 줄은 줄도 바 바를 바와 뿐 뿐만 뿐이다 뿐입니다 밖에 만큼 만큼의 등 등의 등을 등이 등은 등에
        등으로 적
        적이 적은 적도
        중 중에 중에서 중인 중이다 동안 동안에 후 후에 뒤에 전에 이후 이래 채 채로 척 듯 듯이 듯한 대로
        있다 있는 있어 있어요 있습니다 있고 있지만 있을 있으면 있으며 있었다 있었어요 있었습니다 있었던
        있던 있는데 있도록 있기
        없다 없는 없어 없어요 없습니다 없고 없지만 없을 없으면 없었다 없었어요 없었습니다 없었던 없이
        같다 같은 같아 같아요 같습니다 같고 같이
        않다 않는 않아 않아요 않습니다 않고 않지만 않을 않으면 않은 않았다 않았어요 않았습니다 않는다
        않도록 않게
        싶다 싶은 싶어 싶어요 싶습니다 싶고 싶었다 싶었어요 싶었습니다
        한다 합니다 했다 했습니다 하는 된다 됩니다 주세요 주십시오
        씨 씨는 씨가 씨의 씨를
        정도 정도의 정도는 정도로 정도가 쯤 지 봐 봐요 봤어요 봤습니다 봅니다 보세요
        볼게요 볼까요 줘 줘요 줄게 줄게요 줄까요 줬어요 줬습니다 드릴게요 드리겠습니다
        버렸다 버렸어요 버렸습니다 돼요
    """,
    "ms": "ini itu pun sahaja",
    "nl": "geleden",
    "pl": """
        się temu byś bym byście byśmy
    """,
    "ru": "же ж бы б ли ль назад",
    "sk": "sa si som sme ste by ho mu",
    "th": "ครับ ค่ะ คะ จ้ะ จ๊ะ จ้า นะ น่ะ สิ ล่ะ หรอก ไหม มั้ย ด้วย เลย",
    "tr": """
        için ile gibi kadar göre sonra önce beri rağmen dolayı ötürü hakkında üzere boyunca tarafından dek
        değin
        itibaren diye olarak olan olduğu olduğunu
        mi mı mu mü miyim mıyım muyum müyüm misin mısın musun müsün miyiz mıyız muyuz müyüz misiniz mısınız
        musunuz müsünüz miydi mıydı muydu müydü miymiş mıymış
        de da dahi bile ki ise idi imiş
        değil değilim değilsin değiliz değilsiniz değiller değildi değildir var vardı yok yoktu
        bey hanım efendi
        etmek etti ettim ettin ettik ettiler eder ederim ederiz ederler ediyor ediyorum ediyoruz
        ediyorlar ediyordu ederek eden edilen edildi edilmiş ediliyor edecek edebilir etmiş etmişti
        etme etmesi ettiği ettiğini oldu olur oluyor olacak olmuş olmak olması olup
    """,
    "uk": "же ж би б",
    "ur": """
        کا کے کی کو میں سے پر نے تک لیے لئے ساتھ بعد بارے طرح طرف پاس دوران خلاف بجائے علاوہ مطابق ذریعے
        سمیت والا
        والے والی والوں
        ہی بھی جی صاحب
        ہے ہیں ہوں ہو تھا تھے تھی تھیں ہوگا ہوگی ہوں گے گا گے گی ہوتا ہوتی ہوتے ہوا ہوئی ہوئے رہا رہے رہی
        چکا چکے چکی
        سکتا سکتی سکتے گیا گئے گئی چاہیے چاہئے
    """,
    "vi": "này ấy nhé nhỉ ạ",
    "yue": "的 地 得 了 着 著 過 过 們 们 嗎 吗 呢 吧 啊 呀 喇 啦 嘅 咗 緊 住 喎 囉 㗎 咩 之",
    "zh": """
        的 地 得 了 着 著 过 過 们 們 吗 嗎 呢 吧 啊 呀 嘛 啦 哦 之 左右
        以上 以下 以前 以后 以後 之前 之后 之後 里 裡
    """,
}

_SETS = word_sets({**_WORDS, "bs": _WORDS["hr"]})


def leaning_back(language: str) -> frozenset[str]:
    """Words of the language before which nothing should break. Empty for a language without a list."""
    return _SETS.get(language, frozenset())
