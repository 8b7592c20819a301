/**
 * Who may import whom. A slice is a folder of src/; the table says which other slices each may use, and
 * refuses all others. Only composition may import every slice, and no slice may import it. Files in
 * test/, bench/ and scripts/ and *.test.ts are not the product; only the rules at the end apply to
 * them. ARCHITECTURE.md gives the reasons.
 */

/** Every slice that speaks HTTP and keeps rows may use these. */
const ground = ['kernel', 'database', 'http', 'queue', 'events'];
const mayUse = {
  kernel: [],
  sandbox: ['kernel'],
  database: ['kernel'],
  redis: ['kernel'],
  http: ['kernel', 'redis'],
  queue: ['kernel', 'redis'],
  egress: ['kernel'],
  events: ['kernel', 'database'],
  leases: ['kernel', 'database'],
  start: [],
  'api-keys': ground,
  skills: ground,
  memories: ground,
  conversations: ground,
  models: ['kernel'],
  credentials: [...ground, 'models'],
  usage: [...ground, 'models'],
  embeddings: [...ground, 'models', 'usage'],
  executors: ['kernel', 'skills'],
  processes: ['kernel', 'database', 'http'],
  journal: [...ground, 'memories', 'conversations'],
  agents: [...ground, 'skills', 'memories', 'conversations', 'models', 'usage', 'journal'],
  jobs: [
    ...[...ground, 'leases', 'skills', 'executors', 'agents', 'conversations', 'memories'],
    'journal',
  ],
  approvals: [...ground, 'journal', 'jobs'],
  'run-events': [...ground, 'journal', 'jobs'],
  schedules: [...ground, 'api-keys', 'skills', 'agents', 'jobs'],
  triggers: [...ground, 'sandbox', 'api-keys', 'skills', 'agents', 'jobs', 'run-events'],
  webhooks: [...ground, 'leases', 'egress', 'agents'],
  'user-data': [
    ...ground,
    'journal',
    'jobs',
    'approvals',
    'run-events',
    'conversations',
    'memories',
    'usage',
  ],
  mcp: [...ground, 'skills', 'agents', 'jobs', 'approvals'],
  'remote-skills': [...ground, 'egress', 'sandbox', 'skills', 'executors'],
  console: [...ground, 'api-keys'],
  // The composition tells it of jobs, so that no slice has to know that it is counted.
  statistics: [...ground, 'skills'],
  move: ['kernel', 'database', 'memories'],
  config: ['kernel', 'egress', 'models'],
  // Only pure modules of the last four: a test of `skillwright/testing` counts what it loads.
  testing: ['kernel', 'executors', 'skills', 'agents', 'jobs', 'journal', 'memories'],
  // Of webhooks the form of a message, which it forwards to a developer's machine.
  cli: ['kernel', 'database', 'redis', 'config', 'move', 'skills', 'testing', 'webhooks'],
};

const product = { path: '^src/', pathNot: '[.]test[.]ts$' };
const either = (names) => `(${names.join('|')})`;

const slices = Object.entries(mayUse).map(([slice, others]) => ({
  name: `slice-${slice}`,
  comment: `src/${slice} may import ${others.length > 0 ? others.join(', ') : 'nothing of ours'}.`,
  severity: 'error',
  // The catalog is stricter and has its own rule.
  from: { path: `^src/${slice}/`, pathNot: '[.]test[.]ts$|^src/skills/catalog/' },
  to: {
    path: '^src/',
    pathNot: `^src/${either([slice, ...others])}/${slice === 'cli' ? '|^src/main[.]ts$' : ''}`,
  },
}));

module.exports = {
  forbidden: [
    ...slices,
    {
      name: 'slice-unknown',
      comment: 'A new folder in src/ needs a line in the table above.',
      severity: 'error',
      from: {
        path: '^src/[^/]+/',
        pathNot: `^src/${either([...Object.keys(mayUse), 'composition'])}/`,
      },
      to: { path: '^src/' },
    },
    {
      name: 'catalog-stands-alone',
      comment: 'A skill of the catalog is what an operator could have written.',
      severity: 'error',
      from: { path: '^src/skills/catalog/', pathNot: '[.]test[.]ts$' },
      to: {
        path: '^src/',
        pathNot: '^src/(skills/definition[.]ts$|skills/catalog/|egress/|sandbox/)',
      },
    },
    {
      name: 'catalog-is-data',
      comment: 'Skills are loaded by folder, inside an executor; no module imports one.',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/skills/catalog/` },
      to: { path: '^src/skills/catalog/' },
    },
    {
      name: 'routes-are-thin',
      comment: 'A route parses, calls one verb of its slice and maps the answer.',
      severity: 'error',
      from: { path: '^src/([^/]+)/.+[.]routes[.]ts$' },
      to: { path: '^src/', pathNot: '^src/($1|http|kernel)/' },
    },
    {
      name: 'routes-belong-to-app',
      comment: 'The composition alone puts the slices behind HTTP.',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: '[.]test[.]ts$|^src/composition/' },
      to: { path: '[.]routes[.]ts$', pathNot: '^src/$1/' },
    },
    {
      name: 'stores-know-only-rows',
      comment:
        'A store knows the database, the kernel and the stores of its slice; policy belongs to the verb.',
      severity: 'error',
      from: { path: '^src/([^/]+)/.+[.]store[.]ts$' },
      to: { path: '^src/', pathNot: '^src/((database|kernel)/|$1/.+[.]store[.]ts$)' },
    },
    {
      name: 'stores-are-private',
      comment: 'Only its own slice (and the composition) imports a store.',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: '[.]test[.]ts$|^src/composition/' },
      to: { path: '[.]store[.]ts$', pathNot: '^src/$1/' },
    },
    {
      name: 'queue-through-its-port',
      comment: 'Slices see the port; the composition alone knows which queue is behind it.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/(queue|composition)/`,
      },
      to: { path: '^src/queue/', pathNot: '^src/queue/queue[.]ts$' },
    },
    {
      name: 'main-starts-the-composition',
      comment:
        'main.ts reads the environment and starts the program; folders hold everything else.',
      severity: 'error',
      from: { path: '^src/[^/]+[.]ts$', pathNot: '^src/author[.]ts$' },
      to: { path: '^src/', pathNot: '^src/(start/.*|composition/run)[.]ts$' },
    },
    {
      name: 'author-is-small',
      comment: 'What an author imports loads nothing of the platform.',
      severity: 'error',
      from: { path: '^src/(author|skills/definition|skills/schema-types)[.]ts$' },
      to: { pathNot: '^(src/skills/(definition|schema-types)[.]ts$|node_modules/typebox/)' },
    },
    {
      name: 'command-line-starts-main',
      comment:
        'Only the start and the entry of the command line start the program in their own process.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli/main[.]ts|start[.]js)$' },
      to: { path: '^src/main[.]ts$' },
    },
    {
      name: 'commander-in-cli',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/cli/` },
      to: { path: 'node_modules/commander/|^packages/client/' },
    },
    {
      name: 'sqlite-driver',
      comment:
        'A backup is made by the driver itself, beside a platform that has the database open.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/database/(sqlite|backup|inspect|wal-loss)[.]ts$`,
      },
      to: { path: '^(node:)?sqlite$' },
    },
    {
      name: 'postgres-driver',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/database/(postgres|inspect|try-migrations)[.]ts$`,
      },
      to: { path: 'node_modules/(@types/pg|pg|pg-pool|pg-cursor)/' },
    },
    {
      name: 'redis-drivers',
      comment: 'BullMQ lives in queue/, ioredis in redis/, which opens every connection.',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/(queue|redis)/` },
      to: { path: 'node_modules/(bullmq|ioredis)/' },
    },
    {
      name: 'mcp-sdk-in-mcp',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/(mcp|remote-skills/mcp)/` },
      to: { path: 'node_modules/@modelcontextprotocol/' },
    },
    {
      name: 'bullmq-in-queue',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/queue/` },
      to: { path: 'node_modules/bullmq/' },
    },
    {
      name: 'ioredis-in-redis',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/redis/` },
      to: { path: 'node_modules/ioredis/' },
    },
    {
      name: 'fastify-at-the-edge',
      comment: 'Stages and verbs know no transport.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|[.]routes[.]ts$|^src/(http|composition)/`,
      },
      to: { path: 'node_modules/(fastify|@fastify/[^/]+)/' },
    },
    {
      name: 'clients-stand-alone',
      comment: 'The console and the client know the API, not the code behind it.',
      severity: 'error',
      from: { path: '^(console|packages)/' },
      to: { path: '^src/' },
    },
    {
      name: 'client-needs-nothing',
      comment: 'The client runs in browsers, and has no dependencies.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: '[.]test[.]ts$' },
      to: { pathNot: '^packages/client/src/' },
    },
    {
      name: 'product-stands-alone',
      comment: 'What runs in production imports nothing that is there to build, test or show it.',
      severity: 'error',
      from: product,
      to: { path: '^(test|bench|scripts|examples|console)/' },
    },
    {
      name: 'no-dev-dependency',
      comment: 'The product runs on `npm install --omit=dev`.',
      severity: 'error',
      from: product,
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'declared-dependency',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolvable',
      severity: 'error',
      // What a peer needs is installed by bench/peers.ts when it runs.
      from: { pathNot: '^bench/peers/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-cycle',
      comment: 'Of what is imported at run time; types may refer to each other.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-orphan',
      comment: 'A module that no other imports and that is no entry is dead.',
      severity: 'error',
      from: {
        orphan: true,
        path: '^(src|test/support)/',
        pathNot:
          '[.]test[.]ts$|^src/(main|author|executors/child|sandbox/sandbox-process|database/migrations/[0-9].*)[.]ts$|^src/skills/catalog/(?!_)',
      },
      to: {},
    },
  ],
  options: {
    // TypeScript 7 has no parser that a program could call; swc reads the same syntax.
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(node_modules|[^/]+/dist[^/]*)/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'types', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
