import { describe, expect, test } from 'vitest';
import { queryOf } from './query.ts';
import { findAmong } from './relevance.ts';
import { columnsOfWords } from './terms.ts';
import { readWords } from './words.ts';

const memory = (content: string, id = content) => ({
  id,
  ...columnsOfWords(readWords(content), 'fact'),
});
const order = (query: string, ...contents: string[]) =>
  findAmong(
    contents.map((content) => memory(content)),
    queryOf(query),
  ).map(({ id }) => id);

describe('relevance', () => {
  test('grows with the mentions of a word, neighbours among them', () => {
    expect(order('tea', 'tea milk', 'tea tea')).toEqual(['tea tea', 'tea milk']);
    expect(order('tea', 'tea tea sea', 'tea tea tea')).toEqual(['tea tea tea', 'tea tea sea']);
  });

  test('falls with what else is said', () => {
    expect(order('tea', 'tea and a lot more', 'tea too')).toEqual([
      'tea too',
      'tea and a lot more',
    ]);
  });

  test('counts every word of the query, the rare ones more', () => {
    expect(order('tea milk', 'tea tea tea sugar', 'tea milk, no sugar', 'a cup')).toEqual([
      'tea milk, no sugar',
      'tea tea tea sugar',
    ]);
    expect(order('tea saffron', 'tea', 'tea', 'tea', 'saffron')[0]).toBe('saffron');
  });

  test('prefers the word itself to its stem, and that to a part', () => {
    expect(order('deliveries', 'deliver', 'delivery', 'deliveries')).toEqual([
      'deliveries',
      'delivery',
      'deliver',
    ]);
  });

  test('is equal for equals, of which the newest comes first', () => {
    const memories = ['1', '3', '2'].map((id) => memory('tea', id));

    expect(findAmong(memories, queryOf('tea')).map(({ id }) => id)).toEqual(['3', '2', '1']);
  });
});

describe('a query finds', () => {
  test.each([
    ['English', 'Who has allergies?', 'Ada is allergic to nuts'],
    ['German', 'Wohin soll geliefert werden?', 'Lieferungen bitte an die Pforte'],
    ['a part of a German compound', 'Wie ist die Adresse?', 'Seine Rechnungsadresse liegt in Bern'],
    ['a German compound by a part', 'Rechnungsadresse', 'Die Adresse der Firma ist neu'],
    ['French', 'Quelles livraisons préfère-t-il ?', 'Il préfère la livraison le matin'],
    ['Spanish', 'facturaciones', 'La facturación es mensual'],
    ['Spanish without accents', 'facturacion', 'La facturación es mensual'],
    ['Italian', 'consegne', 'La consegna avviene di lunedì'],
    ['Portuguese', 'as preferências', 'Ela tem uma preferência por chá'],
    ['Dutch', 'facturen', 'De factuur gaat naar Gent'],
    ['Swedish', 'leveranser', 'Leveransen kommer på måndag'],
    ['Turkish', 'faturalar', 'Faturası e-posta ile gönderilir'],
    ['Russian', 'договоры', 'Срок договора истекает в мае'],
    ['Arabic', 'الفواتير', 'يريد العميل فاتورة شهرية'],
    ['Korean', '고객이', '고객은 녹차를 좋아한다'],
    ['a part of a Korean word', '주소는?', '배송주소가 바뀌었다'],
    ['Chinese', '喜欢什么茶', '客户喜欢绿茶'],
    ['Japanese', '好きな飲み物', '田中さんは緑茶が好きです'],
    ['Thai', 'ไทย', 'ภาษาไทยง่ายมาก'],
    ['words in quotes that stand together', '"green tea"', 'She likes green tea'],
    ['a phrase without spaces', '"京都庁"', '東京都庁へ'],
  ])('%s', (_, query, content) => {
    expect(order(query, content, 'zzz 999')).toEqual([content]);
  });

  test.each([
    ['no phrase that stands apart', '"green tea"', 'tea that is green'],
    ['no stem in quotes', '"teas"', 'tea'],
    ['nothing by what joins words', 'what is the price of it', 'it is the day of rest'],
    ['nothing without words', '?!', '?!'],
  ])('%s', (_, query, content) => {
    expect(order(query, content)).toEqual([]);
  });
});
