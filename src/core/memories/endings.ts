/** Strips the particles and affixes that Korean and Arabic attach to words. */

/** Particles and verb endings; the longest match is removed. */
const koreanEndings = `
  으로부터 에게서 에서는 에서도 으로는 이라고 까지는 부터는 한테서 에서 에게 으로 한테 께서 까지 부터 처럼 보다 마다 조차
  이나 이며 이고 이다 입니다 이에요 예요 라고 하고 와는 과는 에는 에도 들은 들이 들을 들의 들에 은 는 이 가 을 를 의 에 도
  로 와 과 만 나 랑 들
  하였습니다 했습니다 합니다 하십니다 하셨습니다 하세요 해요 했어요 하는 하며 하여 해서 하면 하기 하게 한다 했다 하지 할
  한 함 됩니다 되었습니다 됐습니다 되는 된다 된 될 습니까 합니까 입니까 인가요 나요 습니다 었습니다 았습니다 였습니다 어요
  아요 었어요 았어요 는다 었다 았다 는지 니까 지만 려고 면 고 며 지 게
`
  .trim()
  .split(/\s+/)
  .sort((a, b) => b.length - a.length);

/** A word without its last ending, and without the one before that: `집에서는`, `고객들에게`. */
export function koreanStems(word: string): string[] {
  const stems: string[] = [];
  for (let stem = withoutEnding(word); stem !== null && stems.length < 2; ) {
    stems.push(stem);
    stem = stem.length > 2 ? withoutEnding(stem) : null;
  }
  return stems;
}

function withoutEnding(word: string): string | null {
  const ending = koreanEndings.find((one) => word.endsWith(one) && word.length > one.length);
  return ending === undefined ? null : word.slice(0, -ending.length);
}

const arabicArticle = /^(?:[وف]?[بك]?ال|[وف]?لل)(?=..)/u;
const arabicEnding = /(?:هما|كما|ات|ون|ين|ان|ها|هم|هن|كم|نا|ية|ته|تي|ه|ة|ي|ك)$/u;

/**
 * The word without article and ending, and its root: the letters that singular, plural and verb have in common. `فاتورة`
 * and `فواتير` share one.
 */
export function arabicRoot(word: string): { stems: string[]; root: string } {
  const bare = word.replace(arabicArticle, '');
  const short = bare.replace(arabicEnding, '');
  const stem = short.length >= 3 ? short : bare;
  let root = stem.replace(/[اويىءئؤة]/gu, '');
  if (root.length > 3) root = root.replace(/^[متنس]/u, '');
  return { stems: [bare, stem], root: root.length >= 2 ? root : stem };
}
