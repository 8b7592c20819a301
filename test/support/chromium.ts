/**
 * A real Chromium for browser tests: new profiles, no name resolution, so that no request reaches another
 * host, and a list of every request that was meant for one.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type {
  BrowserContext,
  BrowserType,
  Browser as Chromium,
  LaunchOptions,
  Page,
} from 'playwright-core';
import { deadlineMs } from './wait-for.ts';

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
  // It draws with the processor anyway, and then needs no messages between processes for each frame.
  '--in-process-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  // A page lives for a second: what it would gain from optimized code costs more than it saves. Collecting
  // garbage with many threads costs more of the processor, too, than with one.
  '--js-flags=--no-turbofan --no-maglev --single-threaded-gc',
];

/** The program, or undefined where it is not installed. */
export function findChromium(): string | undefined {
  return programCalled('chromium', 'chromium-browser', 'google-chrome');
}

/** Chromium without its own windows and menus, which takes a third less processor time. */
const findShell = () => programCalled('chromium-headless-shell');

function programCalled(...names: readonly string[]): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(':').concat('/usr/bin', '/usr/local/bin');
  return names
    .flatMap((name) => directories.map((directory) => join(directory, name)))
    .find(existsSync);
}

/** One for all pages of a test process: it starts slowly. It ends with the process. */
let browser: Promise<Chromium> | undefined;

async function launcher(
  executablePath = findChromium(),
): Promise<{ chromium: BrowserType; options: LaunchOptions }> {
  if (executablePath === undefined) throw new Error('Chromium is not installed.');
  // Only here, so that asking whether there is a browser costs nothing.
  const { chromium } = await import('playwright-core');
  return { chromium, options: { executablePath, args: flags } };
}

/** A new profile in the browser that all share. Nothing fades or slides: the processor draws each frame. */
async function sharedProfile(): Promise<BrowserContext> {
  browser ??= launcher(findShell()).then(({ chromium, options }) => chromium.launch(options));
  return await (await browser).newContext({ reducedMotion: 'reduce' });
}

/**
 * A browser of its own, whose pages are tabs of one window, which the shell has not: the one in front hides
 * the others. Its pages have their animations.
 */
async function ownWindow(): Promise<BrowserContext> {
  const { chromium, options } = await launcher();
  // Of its own too, and removed with it.
  return await chromium.launchPersistentContext('', options);
}

/** Opens a page on a new profile, for the pages of `origin`; in a window of its own, if so asked. */
export async function openBrowser(origin: string, window?: 'own'): Promise<Browser> {
  const context = await (window === 'own' ? ownWindow() : sharedProfile());
  // For each thing that a test waits for: Playwright's 30 s are short for a machine that checks a change.
  context.setDefaultTimeout(deadlineMs);
  const elsewhere: string[] = [];
  const errors: string[] = [];
  const isHere = (url: string) => url.startsWith(`${origin}/`) || /^(about|data|blob):/.test(url);

  // They are watched, not intercepted: a page whose requests are intercepted has no cache.
  context.on('request', (request) => {
    if (!isHere(request.url())) elsewhere.push(request.url());
  });
  const watch = (opened: Page) => opened.on('websocket', (socket) => elsewhere.push(socket.url()));
  context.on('page', watch).pages().forEach(watch);
  const page = context.pages()[0] ?? (await context.newPage());
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });

  return { page, elsewhere, errors, close: () => context.close() };
}
