import { describe, expect, test } from 'vitest';
import type { Json } from '../../../kernel/json.ts';
import { buildRequest } from './build-request.ts';
import type { OperationPlan, ParameterPlace, PlannedBody } from './operation.ts';

const plan: OperationPlan = {
  method: 'POST',
  path: '/things',
  baseUrl: 'https://api.example.com/v1',
  parameters: [],
  body: null,
  accept: 'application/json',
};
const array = ['blue', 'black'];
const object = { R: 100, G: 'a b' };

/** The url, or the header, of a request with one parameter. */
async function sent(where: ParameterPlace, style: string, explode: boolean, value: unknown) {
  const parameter = { field: 'color', name: 'color', in: where, style, explode };
  const path = where === 'path' ? '/x{color}' : '/x';
  const parameters = [{ ...parameter, allowReserved: false, isJson: false }];
  const built = await buildRequest({ ...plan, path, parameters }, { color: value });
  const header = built.headers[where === 'cookie' ? 'cookie' : 'color'];
  return header ?? built.url.slice(`${plan.baseUrl}/x`.length);
}

describe('the style of a parameter', () => {
  test.each([
    ['path', 'simple', false, 'a/b c', 'a%2Fb%20c'],
    ['path', 'simple', false, array, 'blue,black'],
    ['path', 'simple', false, object, 'R,100,G,a%20b'],
    ['path', 'simple', true, object, 'R=100,G=a%20b'],
    ['path', 'label', false, array, '.blue,black'],
    ['path', 'label', true, array, '.blue.black'],
    ['path', 'label', true, object, '.R=100.G=a%20b'],
    ['path', 'matrix', false, 'blue', ';color=blue'],
    ['path', 'matrix', false, array, ';color=blue,black'],
    ['path', 'matrix', true, array, ';color=blue;color=black'],
    ['path', 'matrix', true, object, ';R=100;G=a%20b'],
    ['query', 'form', true, 'a&b=c#d', '?color=a%26b%3Dc%23d'],
    ['query', 'form', true, array, '?color=blue&color=black'],
    ['query', 'form', false, array, '?color=blue,black'],
    ['query', 'form', true, object, '?R=100&G=a%20b'],
    ['query', 'form', false, object, '?color=R,100,G,a%20b'],
    ['query', 'spaceDelimited', false, array, '?color=blue%20black'],
    ['query', 'pipeDelimited', false, array, '?color=blue%7Cblack'],
    ['query', 'deepObject', true, object, '?color[R]=100&color[G]=a%20b'],
    ['query', 'deepObject', true, { a: { b: ['x', 'y'] } }, '?color[a][b]=x&color[a][b]=y'],
    ['query', 'form', true, null, ''],
    ['header', 'simple', false, array, 'blue,black'],
    ['header', 'simple', true, object, 'R=100,G=a b'],
    ['cookie', 'form', true, 'a;b', 'color=a%3Bb'],
  ] as const)('%s %s explode=%s of %j is %s', async (where, style, explode, value, expected) => {
    expect(await sent(where, style, explode, value)).toBe(expected);
  });

  test('may leave reserved characters, but for those that end a value', async () => {
    const parameter = { field: 'q', name: 'q', in: 'query', style: 'form', explode: true } as const;
    const parameters = [{ ...parameter, allowReserved: true, isJson: false }];
    const { url } = await buildRequest({ ...plan, parameters }, { q: '/a?b&c' });
    expect(url).toBe('https://api.example.com/v1/things?q=/a?b%26c');
  });

  test('may be JSON', async () => {
    const parameter = { field: 'q', name: 'q', in: 'query', style: 'form', explode: true } as const;
    const parameters = [{ ...parameter, allowReserved: false, isJson: true }];
    const { url } = await buildRequest({ ...plan, parameters }, { q: { a: 1 } });
    expect(url).toBe('https://api.example.com/v1/things?q=%7B%22a%22%3A1%7D');
  });
});

describe('a value that would change the request', () => {
  test.each([
    ['..', 'A value of the path must not be . or ..'],
    ['.', 'A value of the path must not be . or ..'],
    ['', 'color must not be empty, because it is in the path'],
  ])('is refused: %j', async (value, message) => {
    const color = { field: 'color', name: 'color', in: 'path', style: 'simple' } as const;
    const parameters = [{ ...color, explode: false, allowReserved: false, isJson: false }];
    const built = buildRequest({ ...plan, path: '/a/{color}/b', parameters }, { color: value });
    await expect(built).rejects.toThrow(message);
  });

  test('is refused in a header', async () => {
    await expect(sent('header', 'simple', false, 'a\r\nhost: b')).rejects.toThrow(
      'color has characters that a header cannot carry',
    );
  });
});

async function sentBody(body: Partial<PlannedBody>, value: unknown) {
  const planned = { form: 'json', mediaType: 'application/json', parts: {}, ...body } as const;
  return await buildRequest({ ...plan, body: planned }, { body: value } as Json);
}

describe('a body', () => {
  test('is JSON', async () => {
    const { body, headers } = await sentBody({}, { a: [1] });
    expect([body, headers['content-type']]).toEqual(['{"a":[1]}', 'application/json']);
  });

  test('is a form, whose parts have styles', async () => {
    const mediaType = 'application/x-www-form-urlencoded';
    const parts = {
      deep: { style: 'deepObject', explode: true },
      list: { style: 'form', explode: false },
    };
    const value = { a: 'b c', deep: { x: 1 }, list: ['p', 'q'], free: { y: 2 }, many: [1, 2] };
    const { body } = await sentBody({ form: 'form', mediaType, parts }, value);
    expect(body).toBe('a=b%20c&deep[x]=1&list=p,q&free=%7B%22y%22%3A2%7D&many=1&many=2');
  });

  test('is multipart, with files from base64', async () => {
    const parts = { file: { isFile: true }, meta: { contentType: 'application/json' } };
    const base64 = Buffer.from([0, 255, 10]).toString('base64');
    const { body, headers } = await sentBody(
      { form: 'multipart', mediaType: 'multipart/form-data', parts },
      { name: 'n', meta: { a: 1 }, file: { base64, filename: 'a.bin', content_type: 'image/png' } },
    );
    const form = await new Response(body as Uint8Array<ArrayBuffer>, { headers }).formData();
    const [file, meta] = [form.get('file') as File, form.get('meta') as File];
    expect(form.get('name')).toBe('n');
    expect([file.name, file.type]).toEqual(['a.bin', 'image/png']);
    expect([...new Uint8Array(await file.arrayBuffer())]).toEqual([0, 255, 10]);
    expect([meta.type, await meta.text()]).toEqual(['application/json', '{"a":1}']);
  });

  test('is text, or bytes', async () => {
    const text = await sentBody({ form: 'text', mediaType: 'text/csv' }, 'a,b');
    expect([text.body, text.headers['content-type']]).toEqual(['a,b', 'text/csv']);
    const mediaType = 'application/octet-stream';
    const bytes = await sentBody({ form: 'binary', mediaType }, { base64: 'AAE=' });
    expect([...(bytes.body as Uint8Array)]).toEqual([0, 1]);
  });

  test('that is left out sends none', async () => {
    const { body, headers } = await sentBody({}, undefined);
    expect([body, headers['content-type']]).toEqual([null, undefined]);
  });
});

describe('a request that would be much larger than its input', () => {
  const members = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, 1]));
  const longName = { ['k'.repeat(100_000)]: members };
  const tooLong = 'The request would have more than 4194304 characters';

  test('because a long name stands before each member is refused', async () => {
    const parameter = { field: 'q', name: 'q', in: 'query', style: 'deepObject' } as const;
    const parameters = [{ ...parameter, explode: true, allowReserved: false, isJson: false }];
    await expect(buildRequest({ ...plan, parameters }, { q: longName })).rejects.toThrow(tooLong);
    const style = { style: 'deepObject', explode: true };
    const mediaType = 'application/x-www-form-urlencoded';
    const form = sentBody({ form: 'form', mediaType, parts: { q: style } }, { q: longName });
    await expect(form).rejects.toThrow(tooLong);
  });

  test('because a long name of the document stands before each item is refused', async () => {
    const name = 'n'.repeat(10_000);
    const parameter = { field: 'q', name, in: 'query', style: 'form' } as const;
    const parameters = [{ ...parameter, explode: true, allowReserved: false, isJson: false }];
    const q = Array.from({ length: 1_000 }, () => 1);
    await expect(buildRequest({ ...plan, parameters }, { q })).rejects.toThrow(tooLong);
  });

  test('because it has many parts is refused', async () => {
    const multipart = { form: 'multipart', mediaType: 'multipart/form-data', parts: {} } as const;
    const list = Array.from({ length: 1_001 }, () => '');
    await expect(sentBody(multipart, { list })).rejects.toThrow('more than 1000 parts');
    expect((await sentBody(multipart, { list: list.slice(1) })).body).not.toBeNull();
  });
});
