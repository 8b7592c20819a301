/**
 * The console of a whole platform in a real browser with a session, and the accessibility faults that
 * axe finds in a page.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator, Page } from 'playwright-core';
import { buildConsole } from '../../src/apps/console/files.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { openBrowser } from './chromium.ts';
import { consoleFilesAt } from './console-files.ts';
import { move, prepareMoves } from './console-moves.ts';
import { adminSecret, type Platform, type PlatformOptions, startPlatform } from './platform.ts';
import { waitFor } from './wait-for.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const desktop = { width: 1280, height: 800 };
export const phone = { width: 390, height: 844 };

/** Nothing moves but what moves for ever. */
const isStill =
  'document.getAnimations().every((one) => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)';

/**
 * The dialog that is open, or the question that is asked. A message beside the page has the same
 * role and is shown for some seconds, whatever happens beside it.
 */
export function dialogOf(page: Page, role: 'dialog' | 'alertdialog' = 'dialog'): Locator {
  return page.getByRole(role).and(page.locator(':not([aria-modal="false"])'));
}

/** What axe is always asked: no more than is read of its answer. */
const asked = { resultTypes: ['violations'], selectors: false };
/** Only those of its rules whose answers depend on a scheme of colours. */
const colours = { ...asked, runOnly: ['color-contrast', 'link-in-text-block'] };
/**
 * All rules but those whose own impact is minor or moderate, whatever they find. A rule without an impact of
 * its own has that of its checks.
 */
const serious = `{
  ...${JSON.stringify(asked)},
  rules: Object.fromEntries(
    axe._audit.rules
      .filter(({ impact }) => impact === 'minor' || impact === 'moderate')
      .map(({ id }) => [id, { enabled: false }]),
  ),
}`;

export interface ConsoleWorld {
  readonly platform: Platform;
  /** An API key of the organization `default` with all scopes. */
  readonly key: string;
  readonly page: Page;
  /** Errors of the page, and addresses elsewhere that it asked for; there are to be none. */
  readonly errors: string[];
  /**
   * Goes to a place of the console, such as `/jobs`, in the current session, or else as the administrator; within the
   * page that is loaded, if it can.
   */
  open(path: string): Promise<void>;
  /** As `open`, but loads the page, with the focus at its beginning. */
  load(path: string): Promise<void>;
  /** Signs in with a secret, from the page where one does. */
  signInAs(secret: string): Promise<void>;
  /**
   * Leaves the page, and its session after that: a page that is open polls, and the browser reports each refusal as an
   * error.
   */
  leaveSession(): Promise<void>;
  /** What axe finds serious or critical in the page as it is; only in its colours, if so asked. */
  faults(of?: 'colours'): Promise<string[]>;
  /** What axe finds dark and light; the page is light then. What is no colour is the same in both. */
  faultsInBoth(): Promise<string[]>;
  /** Shows the page light or dark, as a system that prefers it. */
  shown(scheme: 'light' | 'dark'): Promise<void>;
  stop(): Promise<void>;
}

/** With a window of its own, its tabs hide one another, as those of a person do. */
export async function startConsole(
  options: PlatformOptions = {},
  window?: 'own',
): Promise<ConsoleWorld> {
  const files = await buildConsole(createLogger('error'));
  const consoleFiles = consoleFilesAt(files);
  const platform = await startPlatform({ ...options, parts: { ...options.parts, consoleFiles } });
  const key = await platform.key();
  const browser = await openBrowser(platform.url, window);
  const { page } = browser;
  await page.setViewportSize(desktop);
  // There before it is needed, because each time it is sent and read anew costs as much as a look itself.
  await prepareMoves(page);
  await page.addInitScript({ content: `window.loadAxe = () => { ${axe} };` });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) errors.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(platform.url)) errors.push(`asked for ${request.url()}`);
  });
  const isSignedIn = async () => {
    const cookies = await page.context().cookies();
    return cookies.some(({ name }) => name.startsWith('skillwright_session'));
  };

  const world: ConsoleWorld = {
    platform,
    key,
    page,
    errors,
    async open(path) {
      if (!(await isSignedIn())) {
        await world.signInAs(adminSecret);
        if (path === '/') return;
      }
      if (!(await move(page, path))) await world.load(path);
    },
    async load(path) {
      if (!(await isSignedIn())) await world.signInAs(adminSecret);
      await page.goto(`${platform.url}/console${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
    },
    async signInAs(secret) {
      await page.goto(`${platform.url}/console/`);
      await page.getByLabel('Admin secret or API key').fill(secret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor();
    },
    async leaveSession() {
      await page.goto('about:blank');
      await page.context().clearCookies();
    },
    async faults(of) {
      // What is still changing its colours has neither the old ones nor the new.
      await waitFor(() => page.evaluate(isStill), { describe: () => 'the page is still' });
      const options = of === undefined ? serious : JSON.stringify(colours);
      const found = (await page.evaluate(
        `window.axe ?? loadAxe(); axe.run(document, ${options}).then(({ violations }) => violations)`,
      )) as { id: string; impact: string; help: string; nodes: { html: string }[] }[];
      return found
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
    },
    async faultsInBoth() {
      await world.shown('dark');
      const found = await world.faults();
      await world.shown('light');
      return [...found, ...(await world.faults('colours'))];
    },
    async shown(colorScheme) {
      await page.emulateMedia({ colorScheme });
      const whenDone = colorScheme === 'dark' ? 'html.dark' : 'html:not(.dark)';
      await page.locator(whenDone).waitFor({ state: 'attached' });
    },
    async stop() {
      await browser.close();
      await platform.stop();
    },
  };
  return world;
}
