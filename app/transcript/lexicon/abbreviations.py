"""Abbreviations whose dot need not end a sentence, in three kinds.

Each entry is casefolded and ends with its dot, as a text writes it. An abbreviation of several words, such
as the German "z. B.", has an entry for each. The tables leave out words that also end sentences in their
own right, such as the English "in." or "sun."; those that a number follows are a kind of their own.

Sources: the sentence-break suppressions of Unicode CLDR 46 for de, en, es, fr, it, pt and ru (npm package
cldr-segments-full, licence Unicode-3.0), CLDR's abbreviations of months, and additions written for this
project. CLDR's entries that are no abbreviation of the language, or are ordinary words, are left out.
"""

from app.transcript.lexicon.words import word_sets

_INTERNATIONAL = "dr. prof. mr. mrs. vs. cf. e.g. i.e."
# Each stands before a name or another word, so no sentence ends with it.
_WITHIN_SENTENCES = {
    "ar": "د. أ. م. أ.د. ص.ب.",
    "bg": "г-н. г-жа. проф. акад. доц. инж. арх. св. напр. т.е. т.нар. вкл. срв. бул. ул. кв. гр. ген. чл.",
    "ca": "sr. sra. srta. dra. st. sta. p.ex. av. pl. c. excm. mn.",
    "cs": """
        p. ing. mgr. bc. mudr. judr. phdr. doc. prof. rndr. sv. např. tj. tzv. mj. resp. popř. příp. cca.
        ul. nám. plk. kpt. por. tel. vč. zvl. zejm. srov. hl. t. j. m.
    """,
    "da": """
        hr. fr. frk. skt. f.eks. bl.a. dvs. d.v.s. pga. p.g.a. mht. m.h.t. evt. inkl. ekskl. jf. jfr. vedr.
        ang. nuv. tidl. sml. kgl. tlf. maks. ing. adv. mag. cand. iflg. gl. hhv. ift. ifm. fhv. ca.
    """,
    "de": """
        hr. hrn. fr. frl. dipl.-ing. dipl.-kfm. ing. st. z.b. z. d.h. d. i.d.r. v.a. u. bzw. evtl. ggf.
        ggfs. vgl. sog. sogen. inkl. exkl. einschl. ausschl. zzgl. insb. insbes. mind. eigtl. urspr.
        entspr. bspw. ehem. geb. gest. verh. hrsg. allg. spezif. lt. gem. bzgl. ugs. röm. kath. ev. österr.
        schweiz. südd. dt. engl. frz. lat. amtl. gesch. tägl. jährl. mtl. tel. fa. i.a. i.v. i. o.g. s.o.
        s.u. v.chr. n.chr. v. n. u.a.w.g. kgl. möbl. jew. näml. dgl. stv. phil. jur. med. rer. ca. z.hd.
        k.u.k. röm.-kath. reg.-bez. ursprüngl. verf. wg. jhrl. d.ä. d.j. i.j. m.w. z.z. u.a. u.u. z.t. m.e.
    """,
    "el": "κ. κα. κ.κ. δρ. καθ. π.χ. δηλ. αγ. λεωφ. τηλ. αρ. βλ. πρβλ. στρ. υπ.",
    "en": """
        ms. messrs. mmes. rev. gen. col. maj. capt. lt. sgt. cpl. pvt. cmdr. adm. gov. sen. supt. insp.
        lt.cdr. st. mt. fr. prof. approx. excl. incl. viz. a.k.a. esp. v. hon.b.a. p.o.
    """,
    "es": """
        sr. sra. srta. sres. sras. srtas. srs. dra. drs. d. dña. dª. lic. licda. lcdo. lcda. ldo. lda. ing.
        arq. prof. profa. gral. cnel. cap. tte. sto. sta. st. fr. mons. excmo. excma. excmos. excmas. ilmo.
        ilma. ilmos. exmo. exma. rvdo. rdo. vda. av. avda. avd. ctra. p.ej. ej. p. v.gr. aprox. tel. tfno.
        dpto. depto. prov. s.m. ntra. ntro. mtro. rvdmo. ss.mm. trad. cfr.
        ee. jj. rr. ff.
    """,
    "fi": """
        esim. ts. t.s. ns. nk. mm. ks. vrt. ent. tri. toht. dipl.ins. prof. ins. rva. puh. os. alk. viim.
        lähet. n. v. synt. väh. enint. huom. kirj. ed. ca.
    """,
    "fr": """
        m. mm. mme. mlle. mgr. me. pr. st. ste. sts. p.ex. p. c.-à-d. c.à.d. av. ap. env. boul. tél. resp.
        éd. p.-d. anc. gén. lt. dir. hôp. gouv. adr. coll. trad. équiv.
    """,
    "hi": "डॉ. डा. श्री. श्रीमती. प्रो. पं. कु. मो. स्व. उदा.",
    "hr": """
        g. gđa. gđica. mr. dr.sc. prof. ing. dipl. sv. npr. tj. tzv. odn. usp. v. ul. tel. ur. kbr. vlč.
        prim.
    """,
    "hu": "dr. ifj. id. özv. prof. pl. ill. kb. ún. szt. gr. br. vö. ld. kr. tel. i.",
    "id": """
        bpk. sdr. sdri. tn. ny. nn. drs. dra. ir. h. hj. kh. pdt. ust. jl. jln. tel. tgl. a.n. u.p. d.a.
        a.l.
    """,
    "it": """
        sig. sigg. dott. avv. ing. arch. geom. rag. on. sen. prof. proff. mons. s. ss. gen. col. cap. ten.
        egr. gent. spett. ill. p.es. es. cfr. c.a. tel. all. rif. fam. ca. n.b. n.d.r. sez.
    """,
    "ms": "en. pn. prof. dr. hj. hjh. ir. jln. tel. cth. spt. y.b. yb.",
    "nl": """
        dhr. mevr. mw. mej. drs. ir. ing. mr. prof. ds. st. jhr. bijv. d.w.z. dwz. m.a.w. m.b.t. m.b.v.
        i.v.m. t.a.v. t.o.v. o.a. o.m. i.p.v. a.u.b. evt. incl. excl. resp. zgn. nl. tel. vgl. z.g. t.g.v.
        i.h.b. n.a.v. i.t.t. gem. gen. kol. c.q. z.o.z. ca.
        a.s.
    """,
    "no": """
        hr. fr. frk. st. f.eks. bl.a. dvs. d.v.s. pga. p.g.a. ifm. ift. iht. mht. evt. inkl. ekskl. jf.
        jfr. ang. vedr. tidl. kgl. tlf. maks. ing. adv. cand. nåv. sml. mtp. vha. fhv. hhv. ca.
    """,
    "pl": """
        np. tj. tzw. tzn. m.in. m. prof. inż. mgr. hab. ks. św. śp. gen. płk. ppłk. mjr. kpt. por. ppor.
        sierż. ul. al. pl. os. woj. tel. red. wyd. oprac. ew. ewent. zw. dot. wg. bp. abp. kard. j. jw. b.
        zob. wł. sp. pt.
    """,
    "pt": """
        sr. sra. srta. srs. sras. dra. drs. dras. d. exmo. exma. ilmo. ilma. prof. profa. profª. eng. engª.
        arq. gen. cel. cap. ten. sgt. pe. fr. sto. sta. s. st. av. r. rod. p.ex. p. aprox. tel. dir. obs.
        v.exa. dep. apt. geom.
    """,
    "ro": """
        dl. dra. d-na. d-l. dr. prof. ing. arh. sf. col. cpt. lt. str. bd. bul. tel. cca. aprox. resp. înv.
        pr. gh. șt. mun. jud.
    """,
    "ru": """
        г-н. г-жа. гр. проф. акад. доц. инж. св. т.е. т. напр. ср. ул. просп. пер. пл. бул. наб. пос. дер.
        ген. кап. лейт. т.н. т.к. т.о. тел. и.о. и. о.
    """,
    "sk": """
        p. ing. mgr. bc. mudr. judr. phdr. doc. rndr. sv. napr. t.j. tj. tzv. t. j. resp. príp. ul. nám.
        plk. kpt. tel. vr. najm. porov. hl. zv. m.
    """,
    "sv": """
        hr. fr. frk. t.ex. t. bl.a. bl. d.v.s. dvs. p.g.a. pga. m.a.o. ev. inkl. exkl. jfr. ang. tel. f.d.
        s.k. resp. enl. kungl. doc. ing. adv. kapt. öv. ca.
    """,
    "th": """
        ดร. ศ. ผศ. รศ. นพ. พญ. จ. อ. ต. ถ. ซ. ม. พล. ร.ต. น.ส. ด.ช. ด.ญ. พ.ศ. ค.ศ. โทร. มร. พ.ต.อ.
        พล.อ. รร. บจก.
    """,
    "tr": """
        doç. yrd. öğr. av. uzm. ecz. müh. mim. hz. sn. alb. yb. bnb. yzb. ütğm. tğm. korg. tümg. org. bkz.
        bknz. örn. mah. cad. sok. apt. tel. çev. ort. m.ö. m.s. t.c. ord. gnkur. fak.
    """,
    "uk": """
        пп. проф. акад. доц. інж. св. ім. т.зв. т. напр. див. пор. вул. просп. пров. пл. бул. бульв. ген.
        кап. тел. м. смт. буд. о. гр. наб.
    """,
    "vi": "ts. ths. gs. pgs. bs. tp. tx. q. p. ks. tt. lm.",
}

_INTERNATIONAL_AMBIGUOUS = """
    etc. inc. ltd. corp. co. jr. sr. ph.d. a.m. p.m. u.s. u.s.a. u.k. u.n. b.c. a.d. d.c. al. ibid.
"""
# Each may stand within a sentence or end it. The months and days are those that are no ordinary words.
_AMBIGUOUS = {
    "bg": "г. гг. в. вв. т.н. др. мин. сек. ч. лв. млн. млрд. хил. стр.",
    "ca": "etc. ex. pàg. gen. febr. abr. jul. ag. set. oct. nov. des.",
    "cs": """
        atd. apod. aj. atp. tis. mil. mld. hod. min. sek. kč. r. l. st. stol. n.l. př.n.l. s.r.o. a.s. str.
        č.
    """,
    "da": """
        osv. m.v. mv. m.m. mm. m.fl. mfl. o.l. ol. o.a. o.lign. el.lign. kr. mio. mia. min. sek. kl. t.
        f.kr. e.kr.
        jan. feb. febr. mar. apr. jun. jul. aug. sep. sept. okt. nov. dec.
    """,
    "de": """
        usw. u.s.w. etc. a. u.ä. ä. u.v.m. u.v.a. v.u.z. n.u.z. chr. m. mio. mrd. std. min. sek. tsd.
        str. jh. jahrh. jhd. e.v. t. o.ä. dergl. usf. b. h. jr. dtzd. pfd. ztr. eur. jan.
        febr. feb. apr. aug. sept. sep. okt. nov. dez. mo. di. mi. do. a.a.o. betr. zt. bes. abs. kap. abt.
        max.
    """,
    "el": "κλπ. κ.λπ. κ.ά. κ.α. κτλ. κ.τ.λ. π.μ. μ.μ. μ.χ. εκ. δισ. χιλ. λεπ. ευρ. χλμ. χ.",
    "en": """
        dept. ave. blvd. rd. hwy. univ. assn. bros. govt. misc. min. max. hr. hrs. yr. yrs. lb. lbs. oz.
        ft. sq. esq. m.d. d.d.s. b.a. m.a. l.a. n.y. r.s.v.p. s.a. n.v. rep. pres. hon. tel. ext. temp.
        abbr. asst. lieut. appt. jan. feb. apr. aug. sept. sep. oct. nov. mon. tue. tues. wed. thu. thur.
        thurs. fri. est.
    """,
    "es": """
        etc. uds. ud. vds. vd. s.a. s.l. a.c. d.c. a. c. hnos. cía. min. máx. mín. seg. hrs. pág. págs.
        núm. kms. tlf. ene. febr. abr. jul. ago. sept. oct. nov. dic. uu. ee.uu. jj.oo. rr.hh. ff.aa. oo.
        ltda. ltdo.
    """,
    "fi": "jne. yms. ym. ymv. tms. milj. mrd. klo. eaa. ekr. jkr. e.kr. j.kr. oy. min. sek. kpl. snt. s. vl.",
    "fr": """
        etc. s.a. s.a.r.l. janv. févr. juil. sept. oct. nov. déc. vol. pl. fig. cie. hab. min. sec. qqch.
        qqn. j.-c. publ.
    """,
    "hi": "ई. ई.पू. कि.मी. रु. से.मी. मि.",
    "hr": "itd. sl. dr. st. god. mil. mlrd. tis. sat. min. sek. kn. r. n.e. pr.kr. d.o.o. d.d. str. br.",
    "hu": """
        stb. sz. ft. fő. kft. bt. zrt. nyrt. du. de. i.sz. i.e. évf. jan. febr. márc. ápr. jún. júl. aug.
        szept. okt. nov. dec.
    """,
    "id": "dll. dsb. dst. dkk. s.d. rp. jt. tbk. s.h. s.e. m.a. agu. okt. des. jan. feb. nov.",
    "it": """
        ecc. etc. a.c. d.c. s.p.a. s.r.l. s.n.c. min. sec. mil. pag. pagg. vol. fig. tav. genn. febbr.
        sett. ott. nov. dic.
    """,
    "ms": "dll. dsb. sdn. bhd. jan. feb. ogo. okt. nov. dis.",
    "nl": """
        enz. etc. e.d. ed. e.a. n.chr. v.chr. b.v. n.v. mln. mld. min. sec. str. jl. p.p. jr. sr. jan.
        febr. feb. mrt. apr. aug. sept. sep. okt. nov. dec. bv. max.
    """,
    "no": """
        osv. m.m. mm. m.fl. mfl. m.v. mv. o.l. e.l. kr. mill. mrd. min. sek. kl. f.kr. e.kr. mnd. stk. etc.
        jan. feb. febr. apr. jun. jul. aug. sep. sept. okt. nov. des.
    """,
    "pl": """
        itd. itp. r. w. tys. mln. mld. zł. gr. godz. min. sek. n.e. p.n.e. n. e. s.a. o.o. in. str. st.
        nast. stycz. lut.
        proc.
    """,
    "pt": """
        etc. ltda. s.a. a.c. d.c. min. seg. máx. mín. pág. págs. vol. h. cia. núm. esq. dto. jan. fev. abr.
        jul. ago. set. out. nov. dez. ex. r.s.v.p. w.c. próx.
    """,
    "ro": """
        etc. ș.a. ș.a.m.d. șamd. d.hr. î.hr. î.e.n. e.n. mil. mld. min. sec. s.a. s.r.l. ian. febr. apr.
        iun. iul. aug. sept. oct. nov. dec. ex.
    """,
    "ru": """
        т.д. д. т.п. п. др. пр. г. гг. в. вв. н.э. э. н. тыс. млн. млрд. руб. коп. долл. мин. сек. ч. чел.
        кг. км. экз. обр. янв. фев. февр. апр. авг. сен. сент. окт. нояб. ноя. дек. г.г. шт. см. зам. зав.
        обл. р-н. корп. отд. кв. пгт.
    """,
    "sk": "atď. pod. tis. mil. mld. hod. min. sek. r. st. stor. n.l. pr.n.l. s.r.o. a.s. str. č.",
    "sv": """
        osv. o.s.v. m.m. m.fl. mfl. etc. e.d. d. o.d. o.dyl. kr. milj. mdr. min. sek. kl. f.kr. e.kr. st.
        tim.
        jan. feb. febr. apr. aug. sep. sept. okt. nov. dec. forts.
    """,
    "tr": """
        vb. vs. v.b. v.s. vd. a.ş. dk. sa. yy. krş. tl. km. oca. şub. haz. tem. ağu. eyl. eki. kas. ara.
        ltd. şti.
    """,
    "uk": """
        т.д. д. т.п. п. ін. р. рр. ст. н.е. е. тис. млн. млрд. грн. коп. дол. хв. сек. год. чол. шт. пр.
        січ. лют. берез. квіт. трав. черв. лип. серп. верес. жовт. листоп. груд. зам. обл. р-н. кв.
    """,
    "vi": "v.v. vv. tr.cn. s.cn.",
}

_INTERNATIONAL_BEFORE_NUMBERS = "nr. no. p. pp. vol. fig. art. cap. tab. par. op. ed. ver."
# Each belongs to the number that follows it; without a number it may be a word that ends the sentence.
_BEFORE_NUMBERS = {
    "ar": "ص. ج. ط.",
    "bg": "стр. чл. ал. гл. ул. бл. вх. ет. ап. фиг. табл. т. тел. ок.",
    "ca": "núm. pàg. pàgs. tel. aprox.",
    "cs": "č. čís. str. s. kap. odst. obr. čl. sv. tř. max. min. tel. dne.",
    "da": "kl. s. kap. stk. bd. ca. tlf. max. maks. min. nr. st.",
    "de": """
        nr. nrn. s. kap. abb. bd. abs. art. ziff. str. tab. zi. tel. ca. rd. min. max. st. fn. ausg. aufl.
        mind.
    """,
    "el": "αρ. σελ. κεφ. άρθ. τόμ. εικ. παρ. τηλ. περ.",
    "en": """
        nos. ch. sec. secs. pt. pg. para. approx. tel. ext. v. est. c. jun. jul. mar. may. dec. sat. sun.
        min. max. rev. ca.
    """,
    "es": """
        núm. núms. nº. n.º. pág. págs. cap. caps. vol. vols. fig. figs. tel. aprox. art. arts. apdo. máx.
        mín.
    """,
    "et": "nr. lk. ptk. tel.",
    "fi": "nro. n:o. s. luk. kpl. puh. n. klo. v.",
    "fr": "n°. no. nos. p. pp. chap. art. fig. vol. tél. env. av. mar. max. min. éd. t.",
    "hr": "br. str. čl. gl. st. sl. tel. sv. oko.",
    "hu": "sz. o. old. fej. bek. tel. kb. kr. max. min. i. u.",
    "id": "no. hal. hlm. bab. jl. tel. tgl. rp. psl. ps.",
    "it": """
        n. nn. num. pag. pagg. cap. art. artt. fig. tav. vol. tel. mar. max. min. gen. feb. apr. giu. lug.
        ago. set. ott. nov. dic.
    """,
    "ms": "no. hlm. bil. bab. jln. rm.",
    "nl": "nr. nrs. blz. pag. hfdst. h. afb. art. afl. dl. kol. tel. ca. max. min. jun. jul.",
    "no": "kl. s. kap. bd. ca. tlf. maks. min. nr. pkt. par.",
    "pl": """
        nr. str. s. rozdz. art. ust. rys. tab. tel. pkt. par. t. poz. ok. maks. min. pok. kl. m.
        godz.
    """,
    "pt": """
        n.º. nº. núm. pág. págs. p. cap. caps. art. arts. fig. vol. tel. aprox. mar. mai. jun. séc. r. máx.
        mín.
    """,
    "ro": "nr. pag. p. cap. art. fig. vol. alin. tel. aprox. mar. bl. sc. et. ap. lit. pct. sec.",
    "ru": "стр. с. гл. ст. рис. табл. п. пп. т. д. кв. корп. оф. тел. ч. разд. прил. пт. ок. мар. июн. июл.",
    "sk": "č. čís. str. s. kap. ods. obr. čl. zv. tr. max. min. tel.",
    "sv": "nr. s. sid. kap. bd. fig. art. tel. ca. c:a. kl. max. min. ung. jun. jul. maj.",
    "tr": "no. nr. s. sf. böl. bl. cilt. c. md. şek. tab. tel. mad. k. d. mar. nis.",
    "uk": "с. стор. гл. розд. ст. рис. табл. п. пп. т. буд. кв. оф. тел. ч. дод.",
    "vi": "tr. số. đ. q. p.",
}


def _sets(table: dict[str, str], international: str, elsewhere: dict[str, str]) -> dict[str, frozenset[str]]:
    """The words of each language, and the international ones that the language does not list elsewhere."""
    own, others = word_sets(table), word_sets(elsewhere)
    general = frozenset(international.split())
    nothing: frozenset[str] = frozenset()
    sets = {
        language: own.get(language, nothing) | (general - others.get(language, nothing))
        for language in own.keys() | others.keys()
    }
    return {**sets, _ANY: general, "bs": sets["hr"], "nn": sets["no"]}


_ANY = ""  # the entry of a language without a list
_WITHIN_SETS = _sets(_WITHIN_SENTENCES, _INTERNATIONAL, _AMBIGUOUS)
_AMBIGUOUS_SETS = _sets(_AMBIGUOUS, _INTERNATIONAL_AMBIGUOUS, _WITHIN_SENTENCES)
_BEFORE_NUMBER_SETS = _sets(_BEFORE_NUMBERS, _INTERNATIONAL_BEFORE_NUMBERS, {})


def abbreviations(language: str) -> frozenset[str]:
    """Abbreviations that never end a sentence, such as `dr.` and `approx.`, each with its dot.

    A language without a list has the international ones only.
    """
    return _WITHIN_SETS.get(language, _WITHIN_SETS[_ANY])


def ambiguous_abbreviations(language: str) -> frozenset[str]:
    """Abbreviations that may end a sentence, such as `etc.` and `inc.`, each with its dot.

    The next word decides: a sentence goes on if it begins with a small letter. None of them is in
    `abbreviations`.
    """
    return _AMBIGUOUS_SETS.get(language, _AMBIGUOUS_SETS[_ANY])


def abbreviations_before_numbers(language: str) -> frozenset[str]:
    """Words whose dot ends no sentence if a number follows, such as `no.` and `fig.`, each with its dot."""
    return _BEFORE_NUMBER_SETS.get(language, _BEFORE_NUMBER_SETS[_ANY])
