"""Function words: a line or cue may begin with one, but should not end with one.

They are conjunctions, prepositions and relative pronouns, and the articles and short pronouns that belong
to the next word. Only frequent words are listed. In a language without a list, punctuation, pauses and
balance alone decide on breaks.
"""

_CONNECTIVES = {
    "ca": "i o però perquè que quan si amb de en per a des fins sense sobre entre com on",
    "cs": "a ale nebo protože že když aby jestli který která které v ve na s se z ze do od pro po před u",
    "da": "og men eller fordi at når hvis som der i på med til fra for af om efter før under ved mellem",
    "de": (
        "und oder aber denn weil dass ob wenn als während obwohl damit bevor nachdem sondern doch wie wo "
        "der die das in im an am auf aus bei beim mit nach von vom zu zum zur für durch gegen ohne um "
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
}

_ARTICLES_AND_PRONOUNS = {
    "da": "en et den det de jeg du han hun vi",
    "de": "ein eine einen einem einer eines den dem des ich du er sie es wir ihr mein dein sein kein nicht",
    "en": "a an the this these those my your his her its our their i you he she it we they not very mr mrs",
    "es": "el la los las un una unos unas lo mi tu su mis tus sus me te se no muy",
    "fr": "le la les un une ce cet cette ces mon ma mes ton ta tes son sa ses je tu il elle nous vous ne se",
    "it": "il lo la i gli le un uno una mio mia tuo tua suo sua mi ti si non",
    "nl": "de het een ik jij je hij zij ze wij we mijn zijn haar niet",
    "no": "en et ei den det de jeg du han hun vi",
    "pt": "o os as um uma uns umas meu minha seu sua me te se não eu",
    "sv": "en ett den det de jag du han hon vi",
}


# By language.
FUNCTION_WORDS = {
    language: frozenset(
        f"{_CONNECTIVES.get(language, '')} {_ARTICLES_AND_PRONOUNS.get(language, '')}".split()
    )
    for language in _CONNECTIVES.keys() | _ARTICLES_AND_PRONOUNS.keys()
}
