/** Like knip.json, for what only tests use: `knip --production --config knip.production.ts`. */
import base from './knip.json' with { type: 'json' };

export default {
  ...base,
  // An export for a test is good where the file uses it as well.
  ignoreExportsUsedInFile: true,
};
