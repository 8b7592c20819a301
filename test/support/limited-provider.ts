/** A provider that takes so many calls a second, and refuses the others. */
import type { Script } from './scripted-provider.ts';

export function limitedTo(perSecond: number, answer: Script) {
  const served: number[] = [];
  let refusals = 0;
  const script: Script = (request) => {
    const now = performance.now();
    while (served[0] !== undefined && served[0] <= now - 1_000) served.shift();
    if (served.length < perSecond) {
      served.push(now);
      return answer(request);
    }
    refusals += 1;
    return { fault: { status: 429 } };
  };
  return { script, refusals: () => refusals };
}
