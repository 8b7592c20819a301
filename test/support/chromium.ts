/**
 * A real Chromium for browser tests: a new profile, no name resolution, and a list of every request
 * that was meant for another host than the one under test, all of which are refused.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

export interface Browser {
  readonly page: Page;
  /** URLs asked for elsewhere than at the origin. */
  readonly elsewhere: readonly string[];
  /** Errors that scripts raised or the console showed. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** The program, or undefined where it is not installed. */
export function findChromium(): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(':').concat('/usr/bin', '/usr/local/bin');
  const programs = ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) =>
    directories.map((directory) => join(directory, name)),
  );
  return programs.find(existsSync);
}

/** Opens a browser for the pages of `origin`. */
export async function openBrowser(origin: string): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('Chromium is not installed.');
  // Only here, so that asking whether there is a browser costs nothing.
  const { chromium } = await import('playwright-core');
  const profile = mkdtempSync(join(tmpdir(), 'skillwright-chromium-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath, args: flags });
  const elsewhere: string[] = [];
  const errors: string[] = [];
  const isHere = (url: string) => url.startsWith(`${origin}/`) || /^(data|blob):/.test(url);

  await context.route('**/*', async (route) => {
    const url = route.request().url();
    if (isHere(url)) return route.continue();
    elsewhere.push(url);
    return route.abort();
  });
  await context.routeWebSocket('**/*', (socket) => {
    elsewhere.push(socket.url());
  });
  const page = context.pages()[0] ?? (await context.newPage());
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });

  return {
    page,
    elsewhere,
    errors,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
