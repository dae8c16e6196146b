"""Conjunctions, prepositions and relative pronouns: a line or cue may well begin with one.

In a language without a list, punctuation, pauses and balance alone decide where a phrase begins. The lists
are written for this project from the grammars of the languages; only frequent words are listed.
"""

from app.transcript.lexicon.words import word_sets

_WORDS = {
    "ca": "i o però perquè que quan si amb de en per a des fins sense sobre entre com on",
    "cs": "a ale nebo protože že když aby jestli který která které v ve na s se z ze do od pro po před u",
    "da": "og men eller fordi at når hvis som der i på med til fra for af om efter før under ved mellem",
    "de": (
        "und oder aber denn weil dass ob wenn als während obwohl damit bevor nachdem sondern doch wie wo "
        "in im an am auf aus bei beim mit nach von vom zu zum zur für durch gegen ohne um "
        "über unter vor hinter neben zwischen seit bis wegen trotz"
    ),
    "en": (
        "and or but nor so because that which who whose when where while if although though unless until "
        "since than as in on at by for from to of with without into onto over under between behind before "
        "after about against during through across near next toward towards"
    ),
    "es": (
        "y e o u pero sino porque que cuando donde si aunque mientras como pues quien cual de del en a al "
        "con por para sin sobre entre desde hasta hacia contra según durante tras ante bajo detrás después "
        "antes"
    ),
    "fi": "ja tai mutta koska että kun jos vaikka joka jotka mikä kuin sekä eli",
    "fr": (
        "et ou mais car donc que qui quand lorsque où si comme parce puisque dont de du des en à au aux "
        "dans par pour sans sous sur avec chez entre vers depuis pendant contre après avant derrière devant"
    ),
    "it": (
        "e ed o ma perché che quando dove se mentre come quindi cui di del della dei delle in nel nella a "
        "al alla da dal dalla con su sul sulla per tra fra senza sotto sopra dopo prima dietro durante"
    ),
    "nl": (
        "en of maar want omdat dat die als wanneer terwijl hoewel toen waar in op aan bij met naar van "
        "voor door tegen zonder om over onder achter naast tussen sinds tot na uit"
    ),
    "no": "og men eller fordi at når hvis som i på med til fra for av om etter før under ved mellom",
    "pl": "i oraz lub albo ale bo że żeby gdy jeśli który która które w we na z ze do od dla po przed o",
    "pt": (
        "e ou mas porque que quando onde se embora enquanto como pois quem cujo de do da dos das em no na "
        "nos nas a ao à com por pelo pela para sem sobre entre desde até contra após antes depois atrás"
    ),
    "ro": "și sau dar pentru că când unde dacă deși care în pe la cu din de fără peste sub între după",
    "ru": (
        "и а но или что чтобы если когда где потому как который которая которые в во на с со к ко из от до "
        "для по о об за над под при без через между перед"
    ),
    "sv": "och men eller för att när om som i på med till från av efter före under vid mellan därför",
    "tr": "ve veya ama çünkü fakat ki eğer için ile gibi",
    "uk": "і й та але або що щоб якщо коли де бо як який яка які в у на з із до від для по про за під без",
    "ar": (
        "و أو أم ثم بل لكن ولكن أن إن إذا لأن لأنه لأنها حيث حين عندما بينما كما الذي التي الذين من في "
        "على إلى عن مع بعد قبل عند بين خلال حول ضد بدون منذ حتى أمام خلف تحت فوق وفي ومن وعلى وإلى وكان "
        "ولم"
    ),
    "bg": (
        "и а но или че да защото ако когато докато където който която което които в във на с със от до "
        "за из по при под над между през към след преди без"
    ),
    "el": (
        "και κι ή αλλά όμως ότι πως γιατί επειδή αν όταν ενώ που αφού σε στο στη στην στον στα στις "
        "στους με από για προς μετά πριν χωρίς κατά μέχρι"
    ),
    "fa": "و یا اما ولی که چون اگر وقتی تا زیرا در از به با برای بر بدون پس پیش",
    "he": (
        "או אבל אלא כי אם כאשר כש אשר למרות מפני בגלל עם על אל אצל בין לפני אחרי תחת מול ליד בלי עד של "
        "לפי דרך"
    ),
    "hi": (
        "और या लेकिन मगर पर कि क्योंकि अगर यदि जब तब तो जो जिस जिसे जिसने जिसका जिसकी जिसके जहाँ जैसे ताकि बल्कि इसलिए"
    ),
    "hr": (
        "i a ali ili nego jer da ako kad kada dok gdje koji koja koje kojeg kojem u na s sa od do iz za "
        "po o pri pod nad između kroz prema nakon prije bez"
    ),
    "hu": "és vagy de hanem mert hogy ha amikor amíg ahol aki ami amely amelyik mint mintha bár noha ezért",
    "id": (
        "dan atau tetapi tapi karena bahwa jika kalau ketika saat sementara meskipun yang di ke dari "
        "pada dengan untuk oleh tanpa tentang antara sampai sejak setelah sebelum"
    ),
    "ko": "그리고 그러나 하지만 그런데 그래서 또는 혹은 그러면 왜냐하면 및",
    "ms": (
        "dan atau tetapi kerana bahawa jika kalau apabila semasa walaupun yang di ke dari pada dengan "
        "untuk oleh tanpa tentang antara sampai sejak selepas sebelum"
    ),
    "sk": (
        "a ale alebo lebo pretože že keď aby či ktorý ktorá ktoré v vo na s so z zo do od pre po pred o "
        "pri pod nad medzi cez bez"
    ),
    "ur": "اور یا لیکن مگر کہ کیونکہ اگر جب تب تو جو جس جسے جہاں جیسے تاکہ بلکہ",
    "vi": (
        "và hoặc hay nhưng mà vì nếu khi tuy rằng thì để của ở trong trên dưới với cho từ đến về giữa "
        "sau trước"
    ),
}

_SETS = word_sets(_WORDS)


def connectives(language: str) -> frozenset[str]:
    """Words of the language before which a break is good. Empty for a language without a list."""
    return _SETS.get(language, frozenset())


# They join like with like, so no article, preposition or auxiliary stands before one with its noun or verb
# still to come. After such a word they begin a phrase: "he came in | and sat down".
_COORDINATORS = {
    "ar": "أو ثم لكن ولكن بل",
    "bg": "и а но или",
    "ca": "i o però sinó",
    "cs": "a i ale nebo anebo",
    "da": "og men eller",
    "de": "und oder aber sondern sowie",
    "el": "και κι ή αλλά",
    "en": "and or but nor",
    "es": "y e o u pero sino",
    "et": "ja ning või aga kuid vaid",
    "fa": "و یا اما ولی",
    "fi": "ja tai mutta sekä",
    "fr": "et ou mais car",
    "he": "או אבל אלא אך",
    "hi": "और या लेकिन मगर",
    "hr": "i a ali ili",
    "hu": "és s vagy de hanem",
    "id": "dan atau tetapi tapi",
    "it": "e ed o ma oppure",
    "ms": "dan atau tetapi tapi",
    "nl": "en of maar want omdat",
    "no": "og men eller",
    "pl": "i oraz lub albo ale lecz a",
    "pt": "e ou mas",
    "ro": "și sau dar iar",
    "ru": "и а но или",
    "sk": "a i ale alebo",
    "sv": "och men eller",
    "tr": "ve veya ama fakat ancak çünkü",
    "uk": "і й та але або чи",
    "ur": "اور یا لیکن مگر",
    "vi": "và hoặc nhưng",
}
_COORDINATOR_SETS = word_sets(_COORDINATORS)
_COORDINATOR_SETS["bs"], _COORDINATOR_SETS["nn"] = _COORDINATOR_SETS["hr"], _COORDINATOR_SETS["no"]


def coordinators(language: str) -> frozenset[str]:
    """Words such as "and", before which no word is left that needs another one after it."""
    return _COORDINATOR_SETS.get(language, frozenset())
