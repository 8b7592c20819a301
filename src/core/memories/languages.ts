/**
 * Guesses the languages of a text in Latin letters by its stop words: articles, pronouns, prepositions,
 * question words. The guess selects the stemmers for a text and the stop words to remove from a query.
 */

export type Language = 'en' | 'de' | 'fr' | 'es' | 'it' | 'pt' | 'nl' | 'sv' | 'tr';

/** Stop words by language, without accents, like the words of `words.ts`. */
const lists: Readonly<Record<Language, string>> = {
  en: `a an the this that these those and or but if of in on at to for from with by about as into is are was were be
    been being am do does did has have had having will would can could should shall may might must not no yes it its
    he she they them his her their our we us you your i me my mine who whom whose which what when where why how there
    here than then so such any some all each every s t don doesn isn please tell show find know much many get gets`,
  de: `der die das den dem des ein eine einen einem einer eines und oder aber wenn ob von vom in im an am auf aus bei beim
    mit nach zu zum zur fur uber unter um durch gegen ohne seit bis ist sind war waren sein wird werden wurde wurden hat
    haben hatte hatten kann konnen soll sollen muss mussen darf nicht kein keine es er sie wir ihr ihm ihn ihnen ihre
    ihren ihrem ihrer seine seinen seinem seiner ich du mich mir dich dir sich uns unser unsere unserem unseren wer wen
    wem wessen was wann wo wohin woher warum wie welche welcher welches welchen welchem wieviel als auch so dass da
    noch nur schon sehr bitte`,
  fr: `le la les l un une des du de d et ou mais si dans en au aux sur sous par pour avec sans chez vers est sont etait
    etaient etre sera a ont avait avoir ne pas non ce cet cette ces c il elle ils elles on nous vous je j tu me m te t se
    s lui leur leurs son sa ses mon ma mes ton ta tes notre nos votre vos qui que qu quoi quel quelle quels quelles quand
    ou comment pourquoi combien dont y plus tres aussi fait faut peut doit veut`,
  es: `el la los las lo un una unos unas de del y o u pero si en a al por para con sin sobre entre hasta desde es son era
    eran ser fue sera esta estan estaba ha han habia hay tiene no se le les me te nos su sus mi mis tu tus nuestro nuestra
    yo ella ellos ellas usted que quien quienes cual cuales cuando donde adonde como cuanto cuantos cuanta cuantas porque
    muy mas ya tambien este estos estas ese esa eso puede debe quiere`,
  it: `il lo la i gli le l un uno una di del dello della dei degli delle d e ed o ma se in nel nello nella nei negli nelle a
    ad al allo alla ai agli alle da dal dalla dai dalle su sul sulla sui per con senza tra fra e sono era erano essere ha
    hanno aveva avere non si ci ne mi ti vi lui lei loro suo sua suoi sue mio mia nostro nostra io noi voi che chi cui
    quale quali quando dove come perche quanto quanti quanta quante piu molto anche questo questa questi deve puo vuole`,
  pt: `o a os as um uma uns umas de do da dos das e ou mas se em no na nos nas por pelo pela pelos pelas para com sem sobre
    entre ate desde e sao era eram ser foi sera esta estao estava tem ha nao se lhe lhes me te nos seu sua seus suas meu
    minha nosso nossa eu ele ela eles elas voce que quem qual quais quando onde aonde como quanto quantos quanta quantas
    porque muito mais ja tambem este estes estas esse essa isso ao aos pode deve quer`,
  nl: `de het een en of maar als van in op aan bij met naar voor over onder door tegen zonder sinds tot uit is zijn was
    waren wordt worden werd heeft hebben had kan kunnen moet moeten mag niet geen er hij zij ze wij we jij je u hem haar
    hun hen ons onze mijn jouw uw ik mij me zich wie wat wanneer waar waarom hoe welke welk hoeveel dat die dit deze ook
    nog wel heel graag wil`,
  sv: `en ett den det de och eller men om av i pa at till for fran med utan under over vid hos ar var vara blir blev har
    hade kan ska skall skulle maste inte ingen inga han hon dem sin sitt sina hans hennes deras vi oss ni er jag mig min
    mitt mina du dig din vem vems vad nar var varfor hur vilken vilket vilka som att sa ocksa mycket vill`,
  tr: `ve veya ya ama fakat ile icin gibi kadar gore sonra once bir bu su o ben sen biz siz onlar onun benim senin bizim
    sizin onu ona ne neyi neden nicin nasil nerede nereye nereden kim kimin kime kimi hangi hangisi kac zaman mi mu mı
    midir da de ki degil var yok daha en cok her hic olarak olan oldu olur icinde uzerinde`,
};

/** Made at the first use. */
let byWord: ReadonlyMap<string, readonly Language[]> | undefined;

function languagesOfWord(word: string): readonly Language[] | undefined {
  byWord ??= languagesByWord();
  return byWord.get(word);
}

function languagesByWord(): ReadonlyMap<string, readonly Language[]> {
  const found = new Map<string, Language[]>();
  for (const [language, list] of Object.entries(lists) as [Language, string][]) {
    for (const word of new Set(list.split(/\s+/))) {
      found.set(word, [...(found.get(word) ?? []), language]);
    }
  }
  return found;
}

export const allLanguages = Object.keys(lists) as Language[];

/** Words of a text that the guess examines. */
const lookedAtMax = 200;

/** The likely languages; all languages if the text gives no clue. */
export function languagesOf(words: readonly string[]): readonly Language[] {
  const likely = likelyLanguages(words);
  return likely.length === 0 ? allLanguages : likely;
}

/** The words without the stop words of the likely languages; all words if nothing else is left. */
export function withoutStopWords(words: readonly string[]): readonly string[] {
  const likely = likelyLanguages(words);
  const telling = words.filter(
    (word) => !languagesOfWord(word)?.some((language) => likely.includes(language)),
  );
  return telling.length === 0 ? words : telling;
}

/** The likely languages, or none. A single word decides nothing: `hat` and `die` are also English words. */
export function likelyLanguages(words: readonly string[]): Language[] {
  const hits = new Map<Language, number>();
  for (const word of words.slice(0, lookedAtMax)) {
    for (const language of languagesOfWord(word) ?? []) {
      hits.set(language, (hits.get(language) ?? 0) + 1);
    }
  }
  const most = Math.max(0, ...hits.values());
  if (most < 2) return [];
  return allLanguages.filter((language) => (hits.get(language) ?? 0) >= Math.max(2, most * 0.67));
}
