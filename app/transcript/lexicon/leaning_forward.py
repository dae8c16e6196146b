"""Words that belong to what follows: a line or cue should not end with one.

They are the closed classes of each language, in this order: articles, determiners and possessives that
stand before the noun; prepositions; conjunctions, relative and question words; pronouns and clitics before
the verb; particles of negation and degree; auxiliaries that rarely end a clause. A word is left out where
it ends a clause about as often as it leads on, such as the English "more" or the German "sein".

The classes are those of Universal Dependencies (DET, ADP, CCONJ, SCONJ, PRON, PART, AUX). The lists are
written for this project from the
grammars of the languages, and looked through for gaps with the lists of the package stopwordsiso (MIT) in
ar, el, fa, he, hi, ko, pl, ru, tr and uk; no list is copied.
"""

from app.transcript.lexicon.words import word_sets

_WORDS = {
    "bg": """
        един една едно едни този тази тези онзи онази онези всеки всяка всяко някакъв някаква някакво
        някакви
        никакъв никаква никакво никакви
        в във на с със от до за из по при под над пред между без през към след преди срещу заради освен
        вместо
        според чрез сред поради спрямо относно
        и а но или нито че да защото ако когато докато където откъдето както като който която което които
        когото чийто чиято чието чиито кой коя кое кои какво какъв каква какви как защо макар
        не ще най почти твърде прекалено доста
    """,
    "ca": """
        el la els les l un una uns unes del dels al als pel pels aquest aquesta aquests aquestes aquell
        aquella
        aquells aquelles meu meva meus meves teu teva teus teves seu seva seus seves nostre nostra nostres
        vostre vostra vostres cada algun alguna alguns algunes qualsevol
        a amb de d en entre per sense sobre des fins contra durant segons malgrat vers
        i o però sinó ni que perquè quan si com on mentre qui quin quina quins quines
        em et es ens us li hi ho
        no molt tan gairebé quasi
        he has ha hem heu han havia havies havíem havien vaig vas va vam vau van
    """,
    "cs": """
        ten tento tato toto tyto této tomto tohoto můj moje mého mou tvůj tvoje náš naše našeho váš vaše
        svůj
        svoje svého své svou každý každá každé každého každou žádný žádná žádné nějaký nějaká nějaké
        některý
        některá některé
        v ve na s z ze do od ode za pro po před přede u o k ke ku při přes bez beze pod nad mezi kvůli
        podle proti
        během kromě skrz
        a i ale nebo anebo ani protože že aby abych abys abychom abyste když kdyby kdybych kdybys kdybychom
        jestli jestliže pokud zda než ať který která které kteří kterou kterého kterému kterém kterým
        kterých
        kterými co kdo kde kdy jak proč jako jaký jaká jaké jenž jež neboť zatímco ačkoli ačkoliv přestože
        velmi příliš téměř skoro
    """,
    "da": """
        en et den det de denne dette disse min mit mine din dit dine sin sit sine hans hendes deres vores
        jeres
        hver hvert ingen nogle
        i på til fra for af med om under ved mellem uden mod gennem over hos efter før inden indtil trods
        bag
        foran blandt langs per
        og men eller fordi at når hvis som der mens end hvad hvem hvilken hvilket hvilke hvor hvordan
        hvorfor
        selvom hverken enten både
        jeg du han hun vi man
        ikke ganske temmelig næsten
        har havde skal skulle
    """,
    "de": """
        der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
        mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines seine seinen seinem
        seiner
        seines ihr ihre ihren ihrem ihrer ihres unser unsere unseren unserem unserer unseres euer eure
        euren
        eurem eurer eures dieser diese dieses diesen diesem jener jene jenes jenen jenem jeder jede jedes
        jeden
        jedem manche mancher manchen welcher welche welches welchen welchem solche solcher solchen solches
        in im ins an am ans auf aufs aus bei beim mit nach von vom zu zum zur für fürs durch durchs gegen
        ohne um
        ums über übers unter unters vor vorm hinter hinterm neben zwischen seit bis wegen trotz während
        statt
        anstatt außer laut pro per innerhalb außerhalb oberhalb unterhalb mithilfe aufgrund anhand
        und oder aber denn sondern sowie weil dass daß ob wenn als obwohl damit bevor nachdem sobald
        solange
        falls sofern indem sodass wie wo wer wen wem was wann warum wieso weshalb wohin woher deren dessen
        wessen
        ich du er wir man
        nicht sehr so ganz ziemlich fast beinahe nur sogar
    """,
    "el": """
        ο η το οι τα του της των τον την τη τους τις στο στη στην στον στους στις στα ένας μια μία ένα έναν
        ενός
        μιας κάθε
        σε από με για προς χωρίς δίχως μέχρι ως κατά παρά αντί λόγω πριν
        και κι ή αλλά γιατί επειδή ότι πως που όταν αν εάν ενώ αφού μόλις όπως όπου ώστε μήπως ούτε είτε
        ποιος
        ποια ποιο ποιοι ποιον τι πώς πού πότε
        δεν δε μην μη να θα ας πιο σχεδόν
    """,
    "en": """
        a an the this these those my your his her its our their every each no some any either neither
        another
        such several
        of in on at by for from to with without into onto upon over under between among amongst behind
        beside
        before after about against during through throughout across around along near toward towards since
        until
        till than as despite except per via within beyond versus vs amid
        and or but nor so because that which who whom whose what when where why how while whereas if
        although
        though unless whether lest
        i you he she it we they i'm you're he's she's it's we're they're i'll you'll he'll she'll it'll
        we'll
        they'll i've you've we've they've i'd you'd he'd she'd it'd we'd they'd that's there's here's
        what's who's
        where's how's let's
        not very too quite rather most even only just almost nearly
        has have had will would shall should must might could can cannot can't don't doesn't didn't won't
        wouldn't
        shouldn't couldn't haven't hasn't hadn't mustn't isn't aren't wasn't weren't gonna wanna gotta
        et
    """,
    "es": """
        el la los las lo un una unos unas al del este esta estos estas ese esa esos esas aquel aquella
        aquellos
        aquellas mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra vuestros vuestras
        cada
        algún alguna algunos algunas ningún ninguna cualquier otro otra otros otras varios varias
        a ante bajo con contra de desde durante en entre hacia hasta mediante para por según sin sobre tras
        excepto salvo
        y e o u ni pero sino que porque pues aunque mientras cuando donde como si cuyo cuya cuyos cuyas
        quien
        quienes cual cuales qué quién quiénes cuál cuáles cómo cuándo dónde
        me te se le les nos os
        no muy tan casi
        he has ha hemos habéis han había habías habíamos habíais habían habrá habrán habría habrían haya
        hayan
        hubiera hubieran
    """,
    "et": """
        see need iga mingi
        enne ilma
        ja ning või aga kuid vaid ega et kui sest kuna kuigi nagu kes mis mida keda kus kuhu kust millal
        kuidas
        miks
        ma sa ta me te nad mina sina tema
        ei ära väga liiga üsna peaaegu
    """,
    "fa": """
        این آن همین همان هر هیچ یک چند چندین کدام تمام برخی بعضی چنین
        در از به با بر برای بی بدون بین میان روی بالای پشت کنار نزد سوی طی مثل مانند درباره دربارهٔ توسط
        علیه
        ضد طبق جز تا
        و یا اما ولی که اگر چون زیرا وقتی هنگامی چه چگونه هرچند گرچه بلکه حتی
        می نمی خیلی بسیار تقریبا تقریباً فقط
        باید نباید خواهم خواهی خواهد خواهیم خواهید خواهند
    """,
    "fi": """
        tämä tämän tätä tässä tästä tähän nämä näiden tuo tuon
        ennen ilman
        ja tai mutta sekä eli vaan koska että kun jos vaikka jotta kuin kuten joka jotka jonka joiden jota
        joita
        jossa joissa josta joista johon joihin jolla joilla jolle joille jolta ettei ellei missä mistä
        mihin
        milloin miksi miten
        minä sinä hän me te he
        en et ei emme ette eivät älä älkää
        erittäin liian melko noin melkein vain
    """,
    "fr": """
        le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos
        votre
        vos leur leurs chaque quel quelle quels quelles quelque quelques plusieurs aucun aucune certains
        certaines
        d'un d'une d'autres
        à dans par pour sans sous sur avec chez entre vers depuis pendant contre après avant derrière
        devant dès
        parmi malgré selon envers durant hormis sauf en jusque jusqu'à jusqu'au jusqu'aux jusqu'en
        et ou mais car donc ni que qu qui quand lorsque puisque quoique si comme parce où dont tandis afin
        lequel
        laquelle lesquels lesquelles auquel duquel desquels comment pourquoi combien
        qu'un qu'une qu'il qu'ils qu'elle qu'elles qu'on s'il s'ils lorsqu'il lorsqu'on lorsqu'elle
        puisqu'il
        puisqu'on
        je j tu il elle on nous vous ils elles me m te t se s y
        ne n très presque
        ai as a avons avez ont avais avait avions aviez avaient aura auront aurait auraient j'ai n'ai l'ai
        l'a
        l'ont m'a m'ont t'a n'a n'ont n'avait j'avais c'est c'était s'est n'est
        n'y j'y j'en n'en s'en s'y l'y m'en t'en qu'est-ce est-ce qu'en qu'y d'en d'y n'as n'avons
        n'avez n'aura n'étais n'était s'était s'étaient
    """,
    "he": """
        זה זו זאת אלה אלו כל שום איזה איזו
        של את עם על אל מן בין לבין מאחורי כפי מבלי עד בלי ללא לפני אחרי תחת מעל מתחת ליד מול נגד בתוך מתוך
        לתוך בגלל בשביל למען
        כמו לגבי לפי אצל מאז במשך במקום למרות בעקבות באמצעות לקראת
        או אבל אלא אך כי אם כאשר כש כדי לכן אף אפילו מי מה איך למה מתי איפה היכן מדוע אשר שבו שבה שבהם שבהן
        אני אתה הוא היא אנחנו אתם אתן הם הן
        לא אין יש גם רק יותר הכי כמעט די
        שלא שאם שאין שיש שאני שאתה שהוא שהיא שאנחנו שאתם שהם שהן שזה שזו שכל שגם שרק שאת כשאני כשאתה כשהוא
        כשהיא כשאנחנו כשהם כשזה בכל לכל מכל בין מכיוון
    """,
    "hi": """
        एक इस उस इन उन यह ये वह वे यही वही इसी उसी इन्हीं उन्हीं हर प्रत्येक कोई किसी किस कई मेरा मेरी मेरे
        तेरा तेरी तेरे
        हमारा हमारी हमारे आपका आपकी आपके तुम्हारा तुम्हारी तुम्हारे उसका उसकी उसके इसका इसकी इसके उनका उनकी
        उनके
        इनका इनकी इनके अपना अपनी अपने
        और या अथवा तथा एवं लेकिन किंतु किन्तु परंतु परन्तु मगर बल्कि कि क्योंकि यदि अगर ताकि चूंकि चूँकि
        हालांकि हालाँकि
        मानो जो जिस जिन जिसे जिन्हें जिसने जिसका जिसकी जिसके जिसमें जिससे जिनका जिनकी जिनके जिनमें जब जहाँ
        जहां जैसे
        नहीं न मत बहुत बेहद काफ़ी काफी लगभग सबसे अत्यंत केवल सिर्फ सिर्फ़
    """,
    "hr": """
        ovaj ova ovi ove ovu ovog ovoga ovom taj onaj svaki svaka svako svakog svaku nijedan nijedna neki
        nekog
        moj moja moje moju tvoj tvoja tvoje naš naša naše vaš vaša vaše njegov njegova njezin njezina
        njihov
        njihova svoj svoja svoje svoju
        u na s sa iz od do za o po pri k ka kroz bez pod pred nad među između prema protiv poslije prije
        nakon
        zbog osim umjesto tijekom preko kod pokraj uz niz
        i a ali ili ni niti da jer ako kad kada dok iako premda nego što koji koja koje kojeg kojega kojem
        kojoj
        koju kojih kojim kojima gdje kako zašto tko čiji čija čije kao
        ne vrlo previše gotovo skoro samo
    """,
    "hu": """
        a az egy ez ezen azon minden néhány egyetlen melyik milyen valamilyen
        és s vagy de mert hogy ha hanem amikor mikor amíg mielőtt miután aki akik akit ami amik amit amely
        amelyek
        amelyet ahol ahová ahonnan ahogy mint mintha mivel bár noha habár akár vagyis illetve valamint sőt
        hol
        hogyan miért
        nem ne nagyon csak majdnem csaknem
    """,
    "id": """
        sebuah seorang seekor suatu setiap tiap para sang si beberapa
        di ke dari pada kepada untuk dengan oleh dalam tanpa sejak sampai hingga seperti sebagai antara
        tentang
        terhadap bagi
        dan atau tetapi tapi karena bahwa yang jika kalau ketika bila agar supaya meski meskipun walaupun
        sehingga sambil
        ia
        tidak tak bukan belum jangan sangat lebih paling hampir hanya
        akan sedang telah sudah
    """,
    "it": """
        il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dallo
        dalla
        dai dagli dalle nel nello nella nei negli nelle sul sullo sulla sui sugli sulle col coi questo
        questa
        questi queste quel quello quella quei quegli quelle mio mia miei mie tuo tua tuoi tue suo sua suoi
        sue
        nostro nostra nostri nostre vostro vostra vostri vostre ogni qualche alcuni alcune nessun nessuna
        ciascun
        qualsiasi qualunque
        di d a ad da in con su per tra fra senza sotto sopra dopo dietro durante verso contro presso entro
        oltre
        tramite
        e ed o od oppure ma perché che chi cui quando dove se mentre come quale quali né quindi dunque
        poiché
        affinché benché sebbene siccome finché
        mi ti si ci vi ne
        non anche quasi
        ho hai ha abbiamo avete hanno avevo avevi aveva avevamo avevano avrei avrebbe avrebbero
        l'ho l'ha l'hai l'abbiamo l'hanno l'avevo l'aveva c'è c'era c'erano dell all nell sull dall
        quell quest d'un
    """,
    "ja": """
        この その あの どの こんな そんな あんな どんな ある いわゆる あらゆる いろんな 小さな 大きな
        同じ わが とても 非常に もっと 最も かなり すごく
    """,
    "ko": """
        이 그 저 한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 스무 몇 다른 각종 여러 모든 온갖 새 헌 옛 첫 매 각
        어떤 무슨
        어느 웬 이런 그런 저런
        이러한 그러한 약 제 내 맨
        및 또는 혹은 그리고 그러나 하지만 그래서 그런데 만약 만일 즉
        안 못 잘 더 가장 제일 매우 아주 너무 무척 훨씬 덜 거의
    """,
    "ms": """
        sebuah seorang seekor suatu setiap tiap para sang si beberapa
        di ke dari daripada pada kepada untuk dengan oleh dalam tanpa sejak sampai hingga seperti sebagai
        antara
        tentang terhadap bagi
        dan atau tetapi tapi kerana bahawa yang jika kalau apabila ketika semasa bila agar supaya meskipun
        walaupun sehingga sambil
        tidak tak bukan belum jangan lebih paling hampir hanya
        akan sedang telah sudah
    """,
    "nl": """
        de het een dit deze die dat mijn jouw haar ons onze hun elk elke ieder iedere geen sommige enkele
        welk
        welke
        in op aan bij met naar van voor door tegen zonder om over onder achter naast tussen sinds tot na
        uit te
        tijdens volgens vanaf vanwege ondanks per via wegens behalve rond
        en of maar want noch omdat als wanneer terwijl hoewel toen waar wie wat hoe waarom doordat zodat
        zodra
        totdat voordat nadat mits tenzij indien zoals alsof
        ik jij je hij zij ze wij we men er
        niet heel zeer zo nogal bijna
        s t n d'r z'n m'n zo'n
    """,
    "nn": """
        ein ei eit den det dei denne dette desse kvar kvart ingen nokre
        i på til frå for av med om under ved mellom utan mot gjennom over hos etter før innan blant bak per
        og men eller fordi at når viss som mens enn kva kven kor korleis kvifor verken anten både
        eg du han ho vi me
        ikkje å veldig svært ganske nesten
        har hadde skal skulle
    """,
    "no": """
        en et ei den det de denne dette disse hver hvert ingen noen
        i på til fra for av med om under ved mellom uten mot gjennom over hos etter før innen blant bak
        foran
        langs per
        og men eller fordi at når hvis som mens enn hva hvem hvilken hvilket hvilke hvor hvordan hvorfor
        verken
        enten både
        jeg du han hun vi man
        ikke å veldig svært ganske nesten
        har hadde skal skulle
    """,
    "pl": """
        ten ta tę te tej tych ów tamten tamta mój moja moje mojego mojej moją twój twoja twoje nasz nasza
        nasze
        naszego naszej wasz wasza wasze swój swoja swoje swojego swojej swoją każdy każda każde każdego
        każdej
        każdą żaden żadna żadne żadnego żadnej jakiś jakaś jakieś pewien
        w we na z ze do od ode dla po przed przede o u pod nad ponad poza przy przez bez beze za między
        wśród podczas
        według
        wobec oprócz zamiast mimo ku
        a i oraz lub albo ale lecz bo ani że żeby aby gdy gdyby kiedy jeśli jeżeli jako jak niż czy
        ponieważ gdyż iż jaki jaka jakie jakich
        chociaż choć zanim dopóki skoro który która które którzy którą którego której któremu którym
        których
        którymi co kto gdzie dlaczego
        nie bardzo zbyt prawie tylko nawet
    """,
    "pt": """
        o a os as um uma uns umas ao aos à às do da dos das no na nos nas num numa nuns numas dum duma pelo
        pela
        pelos pelas este esta estes estas esse essa esses essas aquele aquela aqueles aquelas deste desta
        destes
        destas desse dessa desses dessas daquele daquela neste nesta nesse nessa naquele naquela meu minha
        meus
        minhas teu tua teus tuas seu sua seus suas nosso nossa nossos nossas cada algum alguma alguns
        algumas
        nenhum nenhuma qualquer quaisquer outro outra outros outras vários várias
        de em com por para pra sem sobre sob entre desde até contra após durante perante mediante conforme
        e ou mas porque que quando onde se embora enquanto como pois quem cujo cuja cujos cujas qual quais
        nem
        eu me te lhe lhes
        não tão quase
    """,
    "ro": """
        un o unei unui niște cel cea cei cele acest această acești aceste acel acea acei acele fiecare
        vreun vreo
        orice oricare niciun nicio câteva câțiva alt altă alți alte al ai ale
        în într întru pe la cu din dintr dintre de fără peste sub între după spre către lângă prin printre
        despre
        până
        și sau ori dar iar ci că să ca dacă când unde cum deși pentru fiindcă deoarece care cine ce cărui
        cărei
        căror nici
        mă te se îmi îți își îl îi le ne vă
        nu foarte prea mai
        am a au aș ar vom vor vei va
    """,
    "ru": """
        этот эта эту эти этих этом этому этими тот мой моя моё мое мои моего моей моему мою моих твой твоя
        твоё твое твои
        наш наша
        наше наши нашего нашей нашу ваш ваша ваше ваши вашего вашей вашу свой своя своё свое свои своего
        своей
        своему свою своих каждый каждая каждое каждого каждую каждой любой любая любое всякий какой какая
        какое
        какие какую какой-то какая-то какое-то какие-то весь вся
        в во на с со к ко из изо от ото до для по о об обо за над под подо при про без безо через сквозь
        между
        перед передо у около после против вместо кроме ради среди из-за из-под насчёт насчет
        и а но или либо ни что чтобы чтоб если когда где куда откуда потому как пока хотя будто словно чем
        который которая которое которые которого которой которому которую которым котором которых которыми
        кто
        чей чья чьё чье чьи зачем почему
        я ты он она оно мы вы они
        не очень слишком почти самый самая самое самые более наиболее лишь только даже
    """,
    "sk": """
        ten tento táto toto tieto túto tohto môj moja moje môjho tvoj tvoja tvoje náš naša naše váš vaša
        vaše svoj
        svoja svoje svojho svoju každý každá každé každého každú žiadny žiadna žiadne nejaký nejaká nejaké
        niektorý niektorá niektoré niektorí
        v vo na s so z zo do od odo za pre po pred u o k ku pri cez bez pod nad medzi kvôli podľa proti
        počas okrem
        a i aj ale alebo ani lebo pretože že aby keď ak či kým než hoci akoby ktorý ktorá ktoré ktorí ktorú
        ktorého ktorému ktorom ktorým ktorých ktorými čo kto kde kedy ako prečo aký aká aké
        nie veľmi príliš takmer skoro
    """,
    "sv": """
        en ett den det de denna detta dessa min mitt mina din ditt dina sin sitt sina hans hennes deras vår
        vårt
        våra ert era varje ingen inget inga några
        i på till från för av med om under vid mellan utan mot genom över hos efter före innan åt bland
        bakom
        framför längs kring runt trots enligt per ur inom utom
        och men eller att när som medan än vad vem vars vilken vilket vilka hur varför eftersom varken
        antingen
        både
        jag du han hon vi man
        inte väldigt ganska nästan
        har hade ska skulle
    """,
    "th": "ไม่ จะ ใน ของ กับ และ หรือ แต่ จาก เพื่อ เพราะ โดย การ ความ ยัง กำลัง เคย ต้อง ควร",
    "tr": """
        bir bu şu o her hiç bazı birçok birkaç hangi kaç tüm bütün kendi aynı diğer
        ve veya yahut ama fakat ancak çünkü eğer hem ne hatta
        en daha çok pek sadece yalnızca neredeyse yaklaşık
    """,
    "uk": """
        цей ця цю ці цих цього цієї цьому цим той мій моя моє мої мого моєї моєму мою моїх твій твоя твоє
        твої наш
        наша наше
        наші нашого нашої нашу ваш ваша ваше ваші вашого вашої вашу свій своя своє свої свого своєї своєму
        свою
        своїх кожен кожний кожна кожне кожного кожну кожної будь-який будь-яка будь-яке жоден жодна жодне
        якийсь
        якась якесь якісь весь вся
        в у на з із зі до від од для по о об про за над під при без через крізь між перед біля після проти
        замість
        крім серед задля щодо упродовж протягом із-за з-за з-під
        і й та а але або чи що щоб якщо якби коли де куди звідки бо поки хоча хоч ніж як немов наче який
        яка яке
        які якого якої якому яку яких яким якими хто чий чия чиє чиї чому навіщо
        я ти він вона воно ми ви вони
        не ні дуже занадто надто майже найбільш лише тільки навіть
    """,
    "ur": """
        ایک اس ان یہ وہ یہی وہی اسی انہی ہر کوئی کسی کس کئی بعض تمام میرا میری میرے تیرا تیری تیرے ہمارا
        ہماری ہمارے
        تمہارا تمہاری تمہارے اپنا اپنی اپنے
        اور یا لیکن مگر بلکہ کہ کیونکہ اگر تاکہ چونکہ اگرچہ جو جس جن جسے جنہیں جنھیں جب جہاں جیسے
        نہیں نہ مت بہت بے تقریبا تقریباً صرف
    """,
    "vi": """
        một các những mỗi mọi từng cái chiếc con vài
        của trong trên dưới với cho từ đến để ở tại về bởi do ngoài giữa bằng theo vào
        và hoặc hay nhưng mà vì nếu khi rằng thì là tuy dù nên như
        không chưa chẳng đừng hãy rất hơi càng đã đang sẽ bị cũng vẫn chỉ
    """,
    "yue": "唔 冇 未 好 最 都 就 仲 又 先 喺 同 嗰 每 個 为 為 因為 如果",
    "zh": """
        不 没 沒 很 太 最 更 非常 都 也 就 还 還 又 再 才 只 已经 已經 正在
        在 从 從 把 被 让 讓 给 給 对 對 向 往 跟 和 与 與 或
        因为 因為 如果 但 但是 而 虽然 雖然 所以 这 這 那 哪 每 各 第 某 星期 礼拜 禮拜 我的 你的 他的 她的
    """,
}

# Arabic writes "and" and "so" as a letter at the head of the word.
_ARABIC = """
    هذا هذه ذلك تلك هؤلاء هذان هاتان كل أولئك عدة بضع بعض جميع أي أية غير كلا
    في من إلى على عن مع بعد قبل عند بين خلال حول ضد دون بدون منذ حتى أمام خلف تحت فوق نحو لدى مثل سوى رغم
    بسبب بشأن
    عبر تجاه ضمن لأجل
    أو أم أما إما إلا ألا ثم بل لكن أن إن إذا إذ لو لولا كما كي لكي لأن كأن بأن حيث حين عندما بينما كلما
    حينما مما عما فيما
    بما ما من
    الذي التي الذين اللذان اللتان اللواتي اللاتي كيف لماذا متى أين هل كم ماذا
    أنه أنها أنهم أنك أننا أنني أني إنه إنها إنهم إنك إننا إنني إني لأنه لأنها لأنهم لأنك لأننا لأنني لكنه
    لكنها
    لكنهم لكنك لكننا لكنني كأنه كأنها كأنهم بأنه بأنها
    أنا أنت أنتم نحن هو هي هم
    لا لم لن ليس ليست قد لقد سوف مجرد
    يا عبد ابن آل
"""
_OTHER_ARABIC_WORDS = {"فهم", "فتحت"}  # "understanding", "opened": not "so they", "so under"
_HAMZA = str.maketrans("أإ", "اا")


def _arabic_words() -> str:
    words = [prefix + word for word in _ARABIC.split() for prefix in ("", "و", "ف")]
    words = [word for word in words if word not in _OTHER_ARABIC_WORDS]
    final_yeh = [word[:-1] + "ى" for word in words if word.endswith("ي")]  # as Egypt writes it
    return " ".join([*words, "و", *final_yeh, *(word.translate(_HAMZA) for word in words)])


def _with_hebrew_and(words: str) -> str:
    return f"{words} " + " ".join("ו" + word for word in words.split())


_SETS = word_sets({**_WORDS, "ar": _arabic_words(), "bs": _WORDS["hr"], "he": _with_hebrew_and(_WORDS["he"])})


def leaning_forward(language: str) -> frozenset[str]:
    """Words of the language after which nothing should break. Empty for a language without a list."""
    return _SETS.get(language, frozenset())
