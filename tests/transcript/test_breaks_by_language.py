"""Where a subtitler of each language would break, and would not.

In the text, `_` stands between words that belong together, `|` where a break is fine, and `/` where a
sentence ends. Other spaces are left open, but no sentence ends there.
"""

from itertools import accumulate

import pytest

from app.transcript.text.breaks import Break, break_between, break_units, rate_breaks

SENTENCES = [
    # numbers, dates, times, prices
    ("ca", "el 3_de_maig_de_2010"),
    ("de", "Am_24._Dez._2020 war Weihnachten. / Er wohnt in_der_Goethestr._12_in_Berlin."),
    ("de", "um_19.30_Uhr, | etwa_20_Leute. / „Ja.“ / Dann ging er."),
    ("en", "on March_3,_1984, | and 10, | 20, | 30 of them"),
    ("en", "It costs $3.50 | per pound. / Only 5_of_them, 50% | of them, 25_people."),
    ("en", "at 10:30 | in_the_hall, twenty_five_million_dollars, the_21st_century, at_gate_B12"),
    ("es", "El 3_de_mayo_de_2010, | n.º_5, 20_mil_euros al_mes, Vive en_EE._UU. | desde 2010."),
    ("fr", "à_10_h_30, le_XXe_siècle, environ_20_% | des_gens, quinze_jours"),
    ("he", "ב-3_במאי_2010, | עמ'_12, כ-20_אחוז"),
    ("ko", "2010년_5월_3일에 3만_5천_원입니다. / 백_명_정도"),
    ("nl", "Het kost €_3,50_per kilo, de_20e_eeuw, in_Utrecht. / 's_Avonds gaan we."),
    ("pl", "W_dniu_3_maja_1791_r. | uchwalono, o_godz._10.30, 2,5_mln_zł, w_XX_wieku"),
    ("pt", "Custa R$_3,50_o_quilo. / O_século_XX, 20_mil_reais, o_dia_3_de_maio_de_2010"),
    ("ru", "в_XIX_веке, 5_тыс._человек, три_дня_назад, стоит 3_руб. | за_кг, и_т._д. | и мы"),
    ("tr", "3_Mayıs_2010'da, Yüzde_20'si, saat_10.30'da, II._Abdülhamid geldi, elma vb. | meyveler"),
    # names and titles
    ("ar", "محمد_بن_سلمان | يا_محمد"),
    ("de", "dass Angela Merkel | und Olaf Scholz kamen, Vincent_van_Gogh | und Papst_Johannes Paul_II."),
    ("en", "so Vincent_van_Gogh | and Mohammed_bin_Salman met Queen_Elizabeth_II"),
    ("en", "by J.R.R._Tolkien | and Martin_Luther_King_Jr. | in_the_U.S. | today"),
    ("es", "que la Universidad_de_Sevilla | y Lope_de_Vega"),
    ("nl", "dat Rafael_van_der_Vaart | en de_Boer"),
    ("ru", "что Людвиг_ван_Бетховен | и В._Путин, и Пётр_I | умер"),
    # a word that leans ends its clause before a conjunction
    ("de", "er kommt an | und geht, ich mag ihn nicht | aber sie"),
    ("en", "he came in | and sat, what I looked for | but never found"),
    ("nl", "hij staat op | en gaat, het gaat niet door | want hij is ziek"),
    ("ru", "он мой | и не твой, так как_и мы"),
    ("de", "ob Peter da | ist, da Menschen max._20_Euro | in_bar"),
    ("hu", "hogy Péter el | megy"),
    ("en", "so Americans do | and the_British"),
    # the marks of each script
    ("de", "»Ja.« / »Nein.« / Dann ging er."),
    ("el", "Τι κάνεις; / Καλά."),
    ("hi", "वह जा रहा_है। / काम शुरू_हुआ। / फिर धीरे_धीरे चला"),
    ("hy", "Բարև։ / Ինչպես ես։"),
    ("ka", "გამარჯობა. / როგორ ხარ? / კარგად."),
    ("ur", "یہ اچھا_ہے۔ / وہ گیا۔ / ٹھیک_ہے۔"),
    # descriptions, lists, small letters
    ("en", "- Dr._Smith? / - Yes. / (laughs) | No! / 1._Mix it. / 2._Add water."),
    ("en", "it was finished. | and then we_left, TELL | THE_OTHERS"),
    ("nl", "Goedenavond. / (gelach) | Ja."),
    ("ko", "그는 더_못_해. / 다 왔어요."),
    ("th", "ดร._สมศักดิ์"),
    ("tr", "çok yardım_etti | ve devam_ediyor"),
]
EXPECTED = {
    "_": {Break.POOR},
    "|": {Break.CLAUSE, Break.PHRASE, Break.PLAIN},
    "/": {Break.SENTENCE},
    "": set(Break) - {Break.SENTENCE},
}


def words_and_marks(text: str) -> tuple[list[str], list[str]]:
    """The words of the text, and the mark before each one."""
    words, marks = [], []
    mark = ""
    for part in text.replace("_", " _ ").split():
        if part in EXPECTED:
            mark = part
        else:
            words.append(f" {part}")
            marks.append(mark)
            mark = ""
    return words, marks


@pytest.mark.parametrize(("language", "text"), SENTENCES)
def test_breaks(language: str, text: str) -> None:
    words, marks = words_and_marks(text)
    units = break_units("".join(words), language)
    ratings = dict(zip(accumulate(map(len, units), initial=0), rate_breaks(units, language), strict=False))
    starts = accumulate(map(len, words), initial=0)
    for word, mark, start in list(zip(words, marks, starts, strict=False))[1:]:
        rating = ratings.get(start, Break.POOR)  # within a unit: never broken
        assert rating in EXPECTED[mark], (word, rating)


@pytest.mark.parametrize(
    ("before", "after", "language"),
    [
        (" 是。", " iPhone", "zh"),
        (" it.", " iPhone", "en"),
        (" nein.", " (lacht)", "de"),
        (" « Non. »", " Elle", "fr"),
        (" Non.\u00a0»", " Elle", "fr"),
        (" 3.", " Sie", "de"),
        (" II.", " We", "en"),
        (" 3.", " Das", "de"),
        (" 19.", " We", "en"),
    ],
)
def test_ends_of_sentences(before: str, after: str, language: str) -> None:
    assert break_between(before, after, language, starts_sentence=False) is Break.SENTENCE


@pytest.mark.parametrize(
    ("before", "after", "language"),
    [
        (" usw.", " (siehe", "de"),
        (" II.", " Weltkrieg", "de"),
        (" 3.", " Oktober", "de"),
        (" EE.", " UU.", "es"),
        (" L'art.", " 5", "it"),
    ],
)
def test_what_ends_no_sentence(before: str, after: str, language: str) -> None:
    assert break_between(before, after, language, starts_sentence=False) is not Break.SENTENCE


@pytest.mark.parametrize(
    ("text", "language", "rated"),
    [
        ("2010年5月3日", "zh", "2010年_5月_3日"),
        ("他有三个孩子", "zh", "他|有|三_个|孩子"),
        ("我不知道", "zh", "我|不_知道"),
        ("这是我的书", "zh", "这_是|我_的|书"),
        ("主持人说", "zh", "主持_人|说"),
        ("作り続けている田中一郎さんに", "ja", "作り続けている|田中_一郎さんに"),
        ("この小さな町", "ja", "この_小さな_町"),
        ("ทุกคนไป", "th", "ทุก_คน|ไป"),
        ("GDPは20兆ドルです", "ja", "GDPは|20兆ドルです"),
        ('เขา "ไปไหม" ไม่ไป', "th", 'เขา| "ไป_ไหม"| ไม่_ไป'),
    ],
)
def test_breaks_without_spaces(text: str, language: str, rated: str) -> None:
    units = break_units(text, language)
    marks = ["_" if rating is Break.POOR else "|" for rating in rate_breaks(units, language)]
    assert "".join(mark + unit for mark, unit in zip(marks, units, strict=True))[1:] == rated
