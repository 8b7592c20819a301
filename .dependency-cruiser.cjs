/**
 * Who may import whom. `src` has zones, from the bottom to the top, and each zone has rooms in the same
 * order: a room imports rooms that stand before it, in its own zone or in a lower one. So no import
 * leads upward, and no rooms form a circle. Files in test/, bench/ and scripts/ and *.test.ts are not
 * the product; only the rules at the end apply to them. ARCHITECTURE.md says what each room is for.
 */
const zones = {
  adapters: 'redis database queue http egress sandbox models blobs',
  core: 'config context files events leases skills limits agents api-keys executors conversations scheduled-runs usage credentials paces embeddings memories journal jobs thinking',
  platform:
    'run-events approvals schedules memory-formation triggers webhooks statistics user-data remote-skills mcp processes reloads queues',
  apps: 'start move console composition testing cli',
};
const rooms = Object.entries(zones).flatMap(([zone, names]) =>
  names.split(' ').map((name) => `${zone}/${name}`),
);

const product = { path: '^src/', pathNot: '[.]test[.]ts$' };
const either = (names) => `(${names.join('|')})`;

const order = ['kernel', ...rooms].map((room, place, all) => ({
  name: `room-${room.split('/').at(-1)}`,
  comment: `src/${room} may import ${place > 0 ? `rooms before it: ${all.slice(0, place).join(', ')}` : 'nothing of ours'}.`,
  severity: 'error',
  // The catalog is stricter and has its own rule.
  from: { path: `^src/${room}/`, pathNot: '[.]test[.]ts$|^src/core/skills/catalog/' },
  to: {
    path: '^src/',
    pathNot: `^src/${either(all.slice(0, place + 1))}/${room === 'apps/cli' ? '|^src/main[.]ts$' : ''}`,
  },
}));

module.exports = {
  forbidden: [
    ...order,
    {
      name: 'room-unknown',
      comment: 'A new folder in src/ needs its place in the table above.',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: `^src/${either(['kernel', ...rooms])}/` },
      to: { path: '^src/' },
    },
    {
      name: 'catalog-stands-alone',
      comment: 'A skill of the catalog is what an operator could have written.',
      severity: 'error',
      from: { path: '^src/core/skills/catalog/', pathNot: '[.]test[.]ts$' },
      to: {
        path: '^src/',
        pathNot:
          '^src/(core/skills/definition[.]ts$|core/skills/catalog/|adapters/egress/|adapters/sandbox/)',
      },
    },
    {
      name: 'catalog-is-data',
      comment: 'Skills are loaded by folder, inside an executor; no module imports one.',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/core/skills/catalog/` },
      to: { path: '^src/core/skills/catalog/' },
    },
    {
      name: 'routes-are-thin',
      comment: 'A route parses, calls one verb of its slice and maps the answer.',
      severity: 'error',
      from: { path: '^src/([^/]+/[^/]+)/.+[.]routes[.]ts$' },
      to: { path: '^src/', pathNot: '^src/($1|adapters/http|kernel)/' },
    },
    {
      name: 'routes-belong-to-app',
      comment: 'The composition alone puts the slices behind HTTP.',
      severity: 'error',
      from: { path: '^src/([^/]+/[^/]+)/', pathNot: '[.]test[.]ts$|^src/apps/composition/' },
      to: { path: '[.]routes[.]ts$', pathNot: '^src/$1/' },
    },
    {
      name: 'stores-know-only-rows',
      comment:
        'A store knows the database, the kernel and the stores of its slice; policy belongs to the verb.',
      severity: 'error',
      from: { path: '^src/([^/]+/[^/]+)/.+[.]store[.]ts$' },
      to: { path: '^src/', pathNot: '^src/((adapters/database|kernel)/|$1/.+[.]store[.]ts$)' },
    },
    {
      name: 'stores-are-private',
      comment:
        'Only its own slice, the composition and the statistics, which count rows of all slices, import a store.',
      severity: 'error',
      from: {
        path: '^src/([^/]+/[^/]+)/',
        pathNot: '[.]test[.]ts$|^src/apps/composition/|^src/platform/statistics/statistics[.]ts$',
      },
      to: { path: '[.]store[.]ts$', pathNot: '^src/$1/' },
    },
    {
      name: 'queue-through-its-port',
      comment: 'Slices see the port; the composition alone knows which queue is behind it.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/(adapters/queue|apps/composition)/`,
      },
      to: { path: '^src/adapters/queue/', pathNot: '^src/adapters/queue/queue[.]ts$' },
    },
    {
      name: 'main-starts-the-composition',
      comment:
        'main.ts reads the environment and starts the program; folders hold everything else.',
      severity: 'error',
      from: { path: '^src/[^/]+[.]ts$', pathNot: '^src/author[.]ts$' },
      to: { path: '^src/', pathNot: '^src/apps/(start/.*|composition/run)[.]ts$' },
    },
    {
      name: 'author-is-small',
      comment: 'What an author imports loads nothing of the platform.',
      severity: 'error',
      from: { path: '^src/(author|core/skills/definition|core/skills/schema-types)[.]ts$' },
      to: { pathNot: '^(src/core/skills/(definition|schema-types)[.]ts$|node_modules/typebox/)' },
    },
    {
      name: 'command-line-starts-main',
      comment:
        'Only the start and the entry of the command line start the program in their own process.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(apps/cli/main[.]ts|start[.]js)$' },
      to: { path: '^src/main[.]ts$' },
    },
    {
      name: 'room-cli-without-composition',
      comment: 'The command line reaches a platform through the client.',
      severity: 'error',
      from: { path: '^src/apps/cli/', pathNot: '[.]test[.]ts$' },
      to: { path: '^src/apps/composition/' },
    },
    {
      name: 'commander-in-cli',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/apps/cli/` },
      to: { path: 'node_modules/commander/|^packages/client/' },
    },
    {
      name: 'sqlite-driver',
      comment:
        'A backup is made by the driver itself, beside a platform that has the database open.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/adapters/database/(sqlite|group-commit|backup|inspect|wal-loss)[.]ts$`,
      },
      to: { path: '^(node:)?sqlite$' },
    },
    {
      name: 'postgres-driver',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|^src/adapters/database/(postgres|inspect|try-migrations)[.]ts$`,
      },
      to: { path: 'node_modules/(@types/pg|pg|pg-pool|pg-cursor)/' },
    },
    {
      name: 'redis-drivers',
      comment: 'BullMQ lives in queue/, ioredis in redis/, which opens every connection.',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/adapters/(queue|redis)/` },
      to: { path: 'node_modules/(bullmq|ioredis)/' },
    },
    {
      name: 'mcp-sdk-in-mcp',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/platform/(mcp|remote-skills/mcp)/` },
      to: { path: 'node_modules/@modelcontextprotocol/' },
    },
    {
      name: 'bullmq-in-queue',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/adapters/queue/` },
      to: { path: 'node_modules/bullmq/' },
    },
    {
      name: 'ioredis-in-redis',
      severity: 'error',
      from: { ...product, pathNot: `${product.pathNot}|^src/adapters/redis/` },
      to: { path: 'node_modules/ioredis/' },
    },
    {
      name: 'fastify-at-the-edge',
      comment: 'Stages and verbs know no transport.',
      severity: 'error',
      from: {
        ...product,
        pathNot: `${product.pathNot}|[.]routes[.]ts$|^src/(adapters/http|apps/composition)/`,
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
      // It has a package.json of its own, which knip checks.
      from: { pathNot: '^bench/tools/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolvable',
      severity: 'error',
      // What these need is installed when they run.
      from: { pathNot: '^(bench/(peers|tools)|docs/[.]vitepress)/' },
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
          '[.]test[.]ts$|^src/(main|author|core/executors/child/child|adapters/sandbox/sandbox-process|adapters/database/migrations/[0-9].*)[.]ts$|^src/core/skills/catalog/(?!_)',
      },
      to: {},
    },
  ],
  options: {
    // TypeScript 7 has no parser that a program could call; swc reads the same syntax.
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: {
      path: [
        '^(node_modules|[^/]+/dist[^/]*)/',
        '/tools/node_modules/',
        '/tools/[a-z]+/node_modules/',
      ],
    },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'types', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
