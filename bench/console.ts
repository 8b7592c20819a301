/** How soon the console is there, in a browser that has never seen it: a new profile each time. */
import type { Request } from 'playwright-core';
import { openBrowser } from '../test/support/chromium.ts';
import { type Figure, lessIsBetter } from './figures.ts';
import { median } from './load.ts';
import { type Program, withServer } from './server.ts';

const visits = 7;
const kilobyte = 1_024;

interface Visit {
  readonly bytes: number;
  /** Until one can type the key, and until the overview shows its numbers to who is signed in. */
  readonly signInMs: number;
  readonly overviewMs: number;
}

export async function measureConsole(): Promise<Figure[]> {
  return await withServer('ours', async (server) => {
    // Built, and asked for once.
    await fetch(`${server.url}/console/`);
    const made: Visit[] = [];
    for (let i = 0; i < visits; i++)
      made.push(await visit(server, server.headers['x-api-key'] ?? ''));
    const of = (part: keyof Visit) => median(made.map((one) => one[part]));
    const second = { floor: 1_000, goal: 500, unit: 'ms' };
    return [
      lessIsBetter('console, first load', of('bytes') / kilobyte, {
        floor: 300,
        goal: 250,
        unit: 'KB',
      }),
      lessIsBetter('console, first visit until one can sign in', of('signInMs'), second),
      lessIsBetter('console, loaded again until the overview is there', of('overviewMs'), second),
    ];
  });
}

async function visit({ url }: Pick<Program, 'url'>, key: string): Promise<Visit> {
  const { page, close } = await openBrowser(url);
  try {
    const sizes: ReturnType<Request['sizes']>[] = [];
    const onFinished = (request: Request) => {
      if (request.url().startsWith(`${url}/console`)) sizes.push(request.sizes());
    };
    page.on('requestfinished', onFinished);
    const begun = performance.now();
    await page.goto(`${url}/console/`);
    const field = page.getByLabel('Admin secret or API key');
    await field.fill(key);
    const signInMs = performance.now() - begun;
    await page.getByRole('button', { name: 'Sign in' }).click();
    await overviewOf(page);
    await page.waitForLoadState('networkidle');
    page.off('requestfinished', onFinished);
    const bytes = (await Promise.all(sizes)).reduce(
      (sum, { responseBodySize, responseHeadersSize }) =>
        sum + responseBodySize + responseHeadersSize,
      0,
    );
    const again = performance.now();
    await page.reload();
    await overviewOf(page);
    return { bytes, signInMs, overviewMs: performance.now() - again };
  } finally {
    await close();
  }
}

/** Its numbers are there, not its frame alone. */
const overviewOf = (page: Awaited<ReturnType<typeof openBrowser>>['page']) =>
  page.getByText('Running now').first().waitFor();
