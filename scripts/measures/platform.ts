/** The platform from its sources, whatever bundle of them there is: what `requests.ts` measures. */
import { run } from '../../src/apps/composition/run.ts';

await run(process.env, { isAuthoring: false });
