/**
 * Moves between the places of the console within the page that is loaded. What was read before is forgotten
 * and the new place is drawn from nothing, so it does all that a load does except starting the program again, which
 * takes more of the processor than the rest.
 */
import type { Page } from 'playwright-core';

/**
 * By way of a place that shows nothing, because the router keeps the parts that two places share. The cache of what
 * was read is found where React keeps the values of its components.
 */
const script = `
  window.readCache = () => {
    const root = document.getElementById('root');
    const [, { stateNode }] = Object.entries(root).find(([name]) => name.startsWith('__reactContainer'));
    let component = stateNode.current;
    while (component.memoizedProps?.client === undefined) component = component.child;
    return component.memoizedProps.client;
  };
  window.moveTo = async (address) => {
    if (document.querySelector('[data-base-ui-inert]') !== null) return false;
    const until = async (isSo) => {
      while (!isSo()) await new Promise((done) => setTimeout(done, 10));
    };
    const title = () => document.querySelector('h1');
    history.pushState({}, '', address.replace(/(?<=^\\/console\\/o\\/[^/]+).*/, '/nowhere'));
    await until(() => title()?.textContent === 'Not found');
    const left = title();
    readCache().removeQueries({ type: 'inactive' });
    history.pushState({}, '', address);
    await until(() => title() !== null && !left.isConnected);
    return true;
  };`;

/** Before the page is loaded. */
export async function prepareMoves(page: Page): Promise<void> {
  await page.addInitScript({ content: script });
}

/** Whether the page could go there by itself: it shows the console, in an organization, and no dialog is left open. */
export async function move(page: Page, place: string): Promise<boolean> {
  const [organization] = /^\/console\/o\/[^/?]+/.exec(new URL(page.url()).pathname) ?? [];
  if (organization === undefined || place.startsWith('/o/')) return false;
  return await page.evaluate(`moveTo(${JSON.stringify(organization + place)})`);
}

/** Whether the page waits for answers; the events of a job do not count. */
export const isReading = (page: Page): Promise<boolean> =>
  page.evaluate('readCache().isFetching() > 0');
